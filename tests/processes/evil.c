// A program that behaves badly on request: `evil <mode> <marker> [file or number]`. The marker in its arguments lets the
// tests find it in the process table. Every process of it ends by itself after a minute, whatever the tests do.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void rest(void) {
    for (;;) pause();
}

static void touch(const char *file) {
    if (file) close(open(file, O_CREAT | O_WRONLY, 0600));
}

static void silence(void) {
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
}

// The child goes on as a daemon, the parent returns after the daemon has left its session.
static int daemonise(void) {
    int ready[2];
    if (pipe(ready)) exit(1);
    if (fork() == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        alarm(60);
        silence();
        close(ready[0]);
        close(ready[1]);
        return 1;
    }
    close(ready[1]);
    char byte;
    while (read(ready[0], &byte, 1) > 0) {}
    close(ready[0]);
    return 0;
}

static void *rest_in_a_thread(void *unused) {
    (void)unused;
    rest();
    return NULL;
}

// Forks, lets the parent go, and again: never the same process for long.
static void run_away(void) {
    for (int i = 0; i < 20000; i++) {
        if (fork() != 0) _exit(0);
        alarm(60);
        setsid();
    }
}

// The same with shared memory and without the C library's fork: each process starts the next on the other stack.
struct hopper { char stacks[2][16384]; int turn, hops; };
static int hop(void *argument) {
    struct hopper *h = argument;
    if (h->hops++ > 100000) _exit(0);
    alarm(60);
    syscall(SYS_setsid);
    h->turn = !h->turn;
    clone(hop, h->stacks[h->turn] + sizeof h->stacks[0], CLONE_VM | SIGCHLD, h);
    _exit(0);
}

// Starts again whatever of its children ends.
static void keep_alive(int count, void (*child)(void)) {
    for (int i = 0;;) {
        if (i < count) {
            if (fork() == 0) { alarm(60); child(); _exit(0); }
            i++;
        } else if (waitpid(-1, NULL, 0) > 0) i--;
        else rest();
    }
}
static void twenty_leaves(void) { keep_alive(20, rest); }

// A process in its exit-stop: killed, and not gone until its tracer lets it go, which it never does.
static void hold_in_exit(void) {
    pid_t held = fork();
    if (held == 0) { alarm(60); setsid(); rest(); }
    ptrace(PTRACE_SEIZE, held, 0, (void *)PTRACE_O_TRACEEXIT);
    kill(held, SIGTERM);
    rest();
}

static void *nothing(void *unused) { return unused; }

static void ready(void) { puts("ready"); fflush(stdout); }

// Comes back as soon as it is killed: a child that watches its parent.
static void phoenix(int lives) {
    while (lives-- > 0) {
        pid_t parent = getpid();
        if (fork() != 0) rest();
        alarm(60);
        setsid();
        while (getppid() == parent) usleep(200);
    }
    rest();
}

int main(int argc, char **argv) {
    if (argc < 3) return 64;
    const char *mode = argv[1], *file = argc > 3 ? argv[3] : NULL;
    int number = file ? atoi(file) : 0;
    alarm(60);
    if (!strcmp(mode, "sleep")) {
        touch(file);
        rest();
    } else if (!strcmp(mode, "daemon")) {
        if (daemonise()) { touch(file); rest(); }
    } else if (!strcmp(mode, "stubborn")) {
        for (int s = 1; s < 32; s++) if (s != SIGALRM) signal(s, SIG_IGN);
        touch(file);
        rest();
    } else if (!strcmp(mode, "headless")) { // the main thread ends, another lives
        pthread_t thread;
        pthread_create(&thread, NULL, rest_in_a_thread, NULL);
        touch(file);
        pthread_exit(NULL);
    } else if (!strcmp(mode, "odd-name")) {
        if (daemonise()) { prctl(PR_SET_NAME, "x) S 1 1 1"); rest(); }
    } else if (!strcmp(mode, "wiped")) {
        if (daemonise()) {
            char *again[] = {"/proc/self/exe", "sleep", argv[2], NULL}, *none[] = {NULL};
            execve("/proc/self/exe", again, none);
        }
    } else if (!strcmp(mode, "nested-subreaper")) {
        if (daemonise()) {
            prctl(PR_SET_CHILD_SUBREAPER, 1);
            for (int i = 0; i < 3; i++) if (daemonise()) rest();
            rest();
        }
    } else if (!strcmp(mode, "hundred-daemons")) {
        for (int i = 0; i < 100; i++) if (daemonise()) rest();
    } else if (!strcmp(mode, "daemons")) {
        for (int i = 0; i < number; i++) if (daemonise()) rest();
        ready();
        rest();
    } else if (!strcmp(mode, "group")) {
        for (int i = 0; i < number; i++) if (fork() == 0) { alarm(60); rest(); }
        ready();
        rest();
    } else if (!strcmp(mode, "groups")) { // one process group each, in the same session
        for (int i = 0; i < 10; i++) if (fork() == 0) { alarm(60); setpgid(0, 0); silence(); rest(); }
    } else if (!strcmp(mode, "runners")) {
        // They start at once, or the first ones would not let the others begin.
        int start[2];
        if (pipe(start)) return 1;
        for (int i = 0; i < (number ? number : 20); i++) if (daemonise()) {
            char byte;
            close(start[1]);
            while (read(start[0], &byte, 1) > 0) {}
            run_away();
            rest();
        }
        close(start[1]);
        usleep(100000);
        ready();
        if (number) rest();
    } else if (!strcmp(mode, "vm-runners")) {
        for (int i = 0; i < number; i++) if (daemonise()) {
            struct hopper *h = mmap(NULL, sizeof *h, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            hop(h);
        }
        usleep(100000);
        ready();
        rest();
    } else if (!strcmp(mode, "tree")) {
        if (daemonise()) keep_alive(20, twenty_leaves);
        usleep(300000);
    } else if (!strcmp(mode, "exit-stop")) {
        if (daemonise()) hold_in_exit();
        usleep(100000);
    } else if (!strcmp(mode, "raw-forks")) { // by calls that a C library does not use
        if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) { alarm(60); setsid(); silence(); rest(); }
        unsigned long long how[8] = {0};
        how[4] = SIGCHLD;
        long made = syscall(435, how, sizeof how);
        if (made == 0) { alarm(60); setsid(); silence(); rest(); }
        printf("clone3 %s\n", made > 0 ? "works" : errno == ENOSYS ? "is not there" : "fails");
#ifdef __x86_64__
        long old;
        __asm__ volatile("int $0x80" : "=a"(old) : "a"(2L) : "memory", "r8", "r9", "r10", "r11");
        if (old == 0) { alarm(60); setsid(); silence(); rest(); }
        long x32 = syscall(57 | 0x40000000);
        if (x32 == 0) { alarm(60); setsid(); silence(); rest(); }
#endif
    } else if (!strcmp(mode, "threads")) {
        for (int i = 0; i < 500; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, nothing, NULL)) return 1;
            pthread_join(thread, NULL);
        }
        puts("500 threads");
    } else if (!strcmp(mode, "many-forks")) {
        for (int i = 0; i < number; i++) {
            pid_t child = fork();
            if (child == 0) _exit(0);
            if (child < 0 || waitpid(child, NULL, 0) != child) return 1;
        }
        puts("forked");
    } else if (!strcmp(mode, "kill-everybody")) { // only ever started under a user of its own
        if (getuid() == 0) return 64;
        if (daemonise()) rest();
        if (daemonise()) { kill(-1, SIGKILL); rest(); }
        rest();
    } else if (!strcmp(mode, "phoenix")) {
        for (int i = 0; i < 5; i++) if (daemonise()) phoenix(200);
    } else if (!strcmp(mode, "stopped")) {
        if (daemonise()) { kill(getpid(), SIGSTOP); rest(); }
    } else if (!strcmp(mode, "kill-warden")) {
        if (daemonise()) rest();
        kill(getppid(), SIGKILL);
        rest();
    } else if (!strcmp(mode, "stop-warden")) {
        kill(getppid(), SIGSTOP);
    } else if (!strcmp(mode, "bother-warden")) {
        for (int s = 1; s < 65; s++) if (s != SIGKILL && s != SIGSTOP && s != SIGCONT && s != SIGSEGV && s != SIGBUS && s != SIGILL && s != SIGFPE && s != SIGABRT && s != SIGTRAP && s != SIGSYS) kill(getppid(), s);
        puts("done");
    } else if (!strcmp(mode, "flood-children")) { // many short children while the leader lives
        for (;;) { if (fork() == 0) { if (fork() == 0) _exit(0); _exit(0); } while (waitpid(-1, NULL, WNOHANG) > 0) {} }
    } else {
        return 64;
    }
    return 0;
}
