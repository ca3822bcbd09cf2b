# A session on a pseudo terminal: a job in front, one that is stopped by Ctrl-Z, and one left in the background.
import fcntl, os, signal, sys, termios, time

signal.alarm(60)
master, slave = os.openpty()
said, tell = os.pipe()
if os.fork() == 0:
    signal.alarm(60)
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        signal.alarm(60)
        os.setpgid(0, 0)
        while True:
            signal.pause()
    try:
        os.setpgid(job, job)
    except OSError:
        pass
    os.tcsetpgrp(slave, job)
    front = os.tcgetpgrp(slave) == job
    os.write(tell, b"f" if front else b"-")
    _, status = os.waitpid(job, os.WUNTRACED)
    os.write(tell, b"s" if os.WIFSTOPPED(status) else b"-")
    os.tcsetpgrp(slave, os.getpgrp())
    # Left behind with the job, which stays stopped.
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while True:
        signal.pause()
front = os.read(said, 1) == b"f"
os.write(master, b"\x1a")
stopped = os.read(said, 1) == b"s"
print("in front:", front)
print("stopped:", stopped, flush=True)
os._exit(0)
