# Children in sessions of their own and a pool of workers, all left behind. Each ends by itself after a minute.
import multiprocessing, os, signal, subprocess, sys

def rest(_=None):
    signal.alarm(60)
    while True:
        signal.pause()

quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
program = "import signal; signal.alarm(60); signal.pause()"
for _ in range(2):
    subprocess.Popen([sys.executable, "-c", program, sys.argv[1]], start_new_session=True, **quiet)
workers = [multiprocessing.Process(target=rest, daemon=False) for _ in range(2)]
for worker in workers:
    worker.start()
print("started", flush=True)
os._exit(0)
