// A program that behaves badly on request: `evil <mode> <marker> [file]`. The marker in its arguments lets the tests find
// it in the process table. Every process of it ends by itself after two minutes, whatever the tests do.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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
        alarm(120);
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
    alarm(120);
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
    } else if (!strcmp(mode, "runners")) {
        for (int i = 0; i < 20; i++) if (daemonise()) { run_away(); rest(); }
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
