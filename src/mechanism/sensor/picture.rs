//! A picture against the one that it must look like, pixel by pixel.
//!
//! Transparent parts are compared as if they lay on white. Memory is bounded by [`MOST_PIXELS`].

use std::io::Cursor;
use std::path::Path;

use image::{DynamicImage, ImageReader, Limits, RgbImage};
use image_compare::Algorithm;

use crate::policy::PictureSpec;

/// Pictures with more pixels are refused.
pub const MOST_PIXELS: u64 = 40_000_000;
/// Memory that decoding one may take, in bytes.
const MOST_DECODING: u64 = 512 << 20;

/// What came of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Share of the pixels that differ, from 0 to 1.
    pub share: f64,
    /// Where they are; `None` when none differs.
    pub region: Option<Region>,
    /// The new picture in grey with the pixels that differ in red, as PNG; `None` when none differs.
    pub difference: Option<Vec<u8>>,
    /// Both sizes, where they are not the same.
    pub sizes: Option<((u32, u32), (u32, u32))>,
}

/// The smallest rectangle around everything that differs, both borders included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Left border.
    pub left: u32,
    /// Upper border.
    pub top: u32,
    /// Right border.
    pub right: u32,
    /// Lower border.
    pub bottom: u32,
    /// Size of the whole picture.
    pub size: (u32, u32),
}

impl Region {
    /// In words: `x 10 to 200, y 30 to 60 (upper left)`.
    pub fn show(&self) -> String {
        let third = |from: u32, to: u32, whole: u32, names: [&'static str; 3]| {
            let middle = (u64::from(from) + u64::from(to)) * 3 / (2 * u64::from(whole.max(1)));
            names[usize::try_from(middle.min(2)).unwrap_or(2)]
        };
        let row = third(self.top, self.bottom, self.size.1, ["upper", "middle", "lower"]);
        let column = third(self.left, self.right, self.size.0, ["left", "centre", "right"]);
        let Region { left, top, right, bottom, .. } = self;
        format!("x {left} to {right}, y {top} to {bottom} ({row} {column})")
    }
}

/// Compares the two pictures. Blocks.
///
/// # Errors
/// Says which picture cannot be read, and why.
pub fn compare_pictures(root: &Path, spec: &PictureSpec) -> Result<Compared, String> {
    let golden =
        open(root, &spec.golden).map_err(|why| format!("{why}; when {} is right, copy it there", spec.actual))?;
    let actual = open(root, &spec.actual)?;
    let (ours, theirs) = (actual.dimensions(), golden.dimensions());
    if ours != theirs {
        return Ok(Compared { share: 1.0, region: None, difference: None, sizes: Some((ours, theirs)) });
    }
    let similar = image_compare::rgb_similarity_structure(&Algorithm::RootMeanSquared, &actual, &golden)
        .map_err(|error| format!("the pictures cannot be compared: {error}"))?;
    let map = similar.image.to_color_map().into_rgb8();
    // The map is 255 where a channel is the same and 0 where it cannot differ more.
    let least = (255.0 * (1.0 - spec.tolerance)).floor().clamp(0.0, 254.0) as u8;
    let mut region: Option<Region> = None;
    let mut differing = 0_u64;
    let mut difference = image::imageops::grayscale(&actual);
    let mut shown = DynamicImage::ImageLuma8(std::mem::take(&mut difference)).into_rgb8();
    for (x, y, pixel) in map.enumerate_pixels() {
        if pixel.0.iter().all(|&channel| channel > least) {
            continue;
        }
        differing += 1;
        shown.put_pixel(x, y, image::Rgb([255, 0, 0]));
        let here = Region { left: x, top: y, right: x, bottom: y, size: ours };
        let known = region.get_or_insert(here);
        known.left = known.left.min(x);
        known.top = known.top.min(y);
        known.right = known.right.max(x);
        known.bottom = known.bottom.max(y);
    }
    let difference = if differing > 0 { Some(png(&shown)?) } else { None };
    let share = differing as f64 / (f64::from(ours.0) * f64::from(ours.1)).max(1.0);
    Ok(Compared { share, region, difference, sizes: None })
}

fn png(picture: &RgbImage) -> Result<Vec<u8>, String> {
    let mut bytes = Cursor::new(Vec::new());
    picture
        .write_to(&mut bytes, image::ImageFormat::Png)
        .map_err(|error| format!("the difference cannot be written: {error}"))?;
    Ok(bytes.into_inner())
}

fn open(root: &Path, name: &str) -> Result<RgbImage, String> {
    let wrong = |why: String| format!("{name} cannot be read: {why}");
    let path = root.join(name);
    let real = path.canonicalize().map_err(|error| wrong(error.to_string()))?;
    if !root.canonicalize().is_ok_and(|root| real.starts_with(root)) || !real.is_file() {
        return Err(wrong("it is no file below the root".into()));
    }
    let reader = || {
        ImageReader::open(&real).and_then(ImageReader::with_guessed_format).map_err(|error| wrong(error.to_string()))
    };
    let (width, height) = reader()?.into_dimensions().map_err(|error| wrong(error.to_string()))?;
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(wrong(format!("it has more than {MOST_PIXELS} pixels")));
    }
    let mut reader = reader()?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_DECODING);
    reader.limits(limits);
    Ok(on_white(reader.decode().map_err(|error| wrong(error.to_string()))?))
}

fn on_white(picture: DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.into_rgb8();
    }
    let picture = picture.into_rgba8();
    RgbImage::from_fn(picture.width(), picture.height(), |x, y| {
        let [red, green, blue, alpha] = picture.get_pixel(x, y).0;
        let mix = |channel: u8| {
            let mixed = (u32::from(channel) * u32::from(alpha) + 255 * (255 - u32::from(alpha)) + 127) / 255;
            u8::try_from(mixed).unwrap_or(255)
        };
        image::Rgb([mix(red), mix(green), mix(blue)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{Rgb, Rgba, RgbaImage};

    fn spec(threshold: f64) -> PictureSpec {
        PictureSpec { take: None, actual: "actual.png".into(), golden: "golden.png".into(), threshold, tolerance: 0.1 }
    }

    fn compare(actual: &RgbImage, golden: &RgbImage) -> Compared {
        let folder = tempfile::tempdir().unwrap();
        actual.save(folder.path().join("actual.png")).unwrap();
        golden.save(folder.path().join("golden.png")).unwrap();
        compare_pictures(folder.path(), &spec(0.0)).unwrap()
    }

    #[test]
    fn the_same_picture_does_not_differ_and_faint_noise_does_not_count() {
        let golden = RgbImage::from_fn(60, 40, |x, y| Rgb([x as u8 * 4, y as u8 * 6, 90]));
        let mut actual = golden.clone();
        assert_eq!(compare(&actual, &golden), Compared { share: 0.0, region: None, difference: None, sizes: None });
        actual.pixels_mut().for_each(|pixel| pixel.0[2] += 5);
        assert_eq!(compare(&actual, &golden).share, 0.0);
    }

    #[test]
    fn what_differs_is_counted_placed_and_shown() {
        let golden = RgbImage::from_pixel(90, 60, Rgb([250, 250, 250]));
        let mut actual = golden.clone();
        for (x, y) in [(70, 50), (79, 50), (75, 59)] {
            actual.put_pixel(x, y, Rgb([0, 0, 0]));
        }
        let compared = compare(&actual, &golden);
        assert!((compared.share - 3.0 / 5400.0).abs() < 1e-9);
        assert_eq!(compared.region.unwrap().show(), "x 70 to 79, y 50 to 59 (lower right)");
        let shown = image::load_from_memory(&compared.difference.unwrap()).unwrap().into_rgb8();
        assert_eq!(shown.get_pixel(75, 59), &Rgb([255, 0, 0]));
        assert_eq!(shown.pixels().filter(|pixel| pixel.0 == [255, 0, 0]).count(), 3);
    }

    #[test]
    fn sizes_that_differ_are_told_and_transparent_is_white() {
        let compared = compare(&RgbImage::new(3, 2), &RgbImage::new(2, 3));
        assert_eq!(compared.sizes, Some(((3, 2), (2, 3))));
        let folder = tempfile::tempdir().unwrap();
        RgbaImage::from_pixel(4, 4, Rgba([0, 0, 0, 0])).save(folder.path().join("actual.png")).unwrap();
        RgbImage::from_pixel(4, 4, Rgb([255, 255, 255])).save(folder.path().join("golden.png")).unwrap();
        assert_eq!(compare_pictures(folder.path(), &spec(0.0)).unwrap().share, 0.0);
    }

    #[test]
    fn what_is_no_picture_is_told_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let missing = compare_pictures(folder.path(), &spec(0.0)).unwrap_err();
        assert!(missing.starts_with("golden.png cannot be read") && missing.contains("copy it there"), "{missing}");
        RgbImage::new(2, 2).save(folder.path().join("golden.png")).unwrap();
        std::fs::write(folder.path().join("actual.png"), "text").unwrap();
        assert!(compare_pictures(folder.path(), &spec(0.0)).unwrap_err().starts_with("actual.png cannot be read"));
        std::fs::remove_file(folder.path().join("actual.png")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("actual.png")).unwrap();
        assert!(compare_pictures(folder.path(), &spec(0.0)).unwrap_err().contains("below the root"));
    }
}
