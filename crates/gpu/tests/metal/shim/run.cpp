// Runs a kernel on a CPU, thread by thread.
//
// A thread of a threadgroup is a coroutine, which stops at barriers and where lanes exchange values. A group runs
// twice, from its first thread on and from its last one on: what differs then is a barrier that is missing. Buffers
// end where memory ends, so that reading or writing behind one is a fault.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <vector>

extern "C" {
// What is written behind a text: how many threads a group has, its shared memory, and a call of the kernel.
struct MetalKernel {
    unsigned threads;
    void (*shared)(void (*visit)(void *bytes, unsigned long count));
    void (*call)(const unsigned *group, const unsigned *groups, unsigned thread, void *const *buffers);
};
extern const MetalKernel metal_kernels[];
}

namespace {

constexpr size_t STACK_BYTES = 256 << 10;
constexpr unsigned LANES = 32;
// Memory that nobody has written: not-a-numbers, and integers that are no index.
constexpr int UNWRITTEN = 0xff;

enum class State { ready, barrier, exchange, done };

struct Coroutine {
    ucontext_t context;
    State state;
    // Values that the lane has shown, the last two of them: others may be one exchange behind.
    unsigned char shown[2][16];
    unsigned exchanges;
};

struct Launch {
    unsigned groups[3];
    unsigned group[3];
    std::vector<void *> buffers;
    std::vector<size_t> sizes;
};

Launch launch;
const MetalKernel *kernel;
std::vector<Coroutine> coroutines;
ucontext_t scheduler;
unsigned current;

[[noreturn]] void fail(const char *what) {
    fprintf(stderr, "%s, in group %u %u %u\n", what, launch.group[0], launch.group[1], launch.group[2]);
    exit(1);
}

void *pages(size_t bytes) {
    void *found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) fail("no memory");
    return found;
}

// Memory whose last byte is the last one that may be touched.
void *fenced(size_t bytes) {
    const size_t page = sysconf(_SC_PAGESIZE);
    const size_t whole = (bytes + page - 1) / page * page;
    char *start = static_cast<char *>(pages(whole + page));
    mprotect(start + whole, page, PROT_NONE);
    return start + whole - bytes;
}

void stop(State state) {
    Coroutine &own = coroutines[current];
    own.state = state;
    swapcontext(&own.context, &scheduler);
}

void begin() {
    kernel->call(launch.group, launch.groups, current, launch.buffers.data());
    coroutines[current].state = State::done;
}

bool all(unsigned from, unsigned to, State state) {
    for (unsigned i = from; i < to; i++)
        if (coroutines[i].state != state) return false;
    return true;
}

void set(unsigned from, unsigned to, State state) {
    for (unsigned i = from; i < to; i++) coroutines[i].state = state;
}

// Runs the lanes of a SIMD group until each is done or at a barrier.
void run_lanes(unsigned from, unsigned to, bool backwards) {
    for (;;) {
        for (unsigned i = from; i < to; i++) {
            current = backwards ? to - 1 - (i - from) : i;
            if (coroutines[current].state == State::ready) swapcontext(&scheduler, &coroutines[current].context);
        }
        if (!all(from, to, State::exchange)) break;
        set(from, to, State::ready);
    }
    for (unsigned i = from; i < to; i++)
        if (coroutines[i].state == State::exchange) fail("lanes part where they exchange values");
}

void run_group(bool backwards) {
    const unsigned threads = kernel->threads;
    kernel->shared([](void *bytes, unsigned long count) { memset(bytes, UNWRITTEN, count); });
    for (Coroutine &own : coroutines) {
        own.state = State::ready;
        own.exchanges = 0;
        makecontext(&own.context, begin, 0);
    }
    while (!all(0, threads, State::done)) {
        for (unsigned i = 0; i < threads; i += LANES) {
            const unsigned from = backwards ? (threads - 1) / LANES * LANES - i : i;
            run_lanes(from, from + LANES < threads ? from + LANES : threads, backwards);
        }
        if (all(0, threads, State::barrier)) {
            set(0, threads, State::ready);
        } else if (!all(0, threads, State::done)) {
            fail("threads part at a barrier");
        }
    }
}

void run_all(bool backwards) {
    unsigned *group = launch.group;
    for (group[2] = 0; group[2] < launch.groups[2]; group[2]++)
        for (group[1] = 0; group[1] < launch.groups[1]; group[1]++)
            for (group[0] = 0; group[0] < launch.groups[0]; group[0]++) run_group(backwards);
}

void read(void *to, size_t bytes) {
    if (fread(to, 1, bytes, stdin) != bytes) fail("the input ends early");
}

} // namespace

extern "C" void metal_barrier() { stop(State::barrier); }

extern "C" void metal_exchange(const void *own, void *other, unsigned bytes, unsigned mask) {
    const unsigned lane = current;
    const unsigned turn = coroutines[lane].exchanges++ % 2;
    memcpy(coroutines[lane].shown[turn], own, bytes);
    stop(State::exchange);
    memcpy(other, coroutines[lane ^ mask].shown[turn], bytes);
}

// Reads the number of the kernel, those of groups along three axes, the number of buffers, and each buffer's length and bytes. Writes the
// bytes of all buffers.
int main() {
    uint32_t count, number;
    read(&number, sizeof number);
    kernel = &metal_kernels[number];
    read(launch.groups, sizeof launch.groups);
    read(&count, sizeof count);
    std::vector<std::vector<char>> given;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes;
        read(&bytes, sizeof bytes);
        given.emplace_back(bytes);
        read(given.back().data(), bytes);
        launch.sizes.push_back(bytes);
        launch.buffers.push_back(fenced(bytes));
    }
    coroutines.resize(kernel->threads);
    for (Coroutine &own : coroutines) {
        getcontext(&own.context);
        own.context.uc_stack.ss_sp = pages(STACK_BYTES);
        own.context.uc_stack.ss_size = STACK_BYTES;
        own.context.uc_link = &scheduler;
    }
    std::vector<std::vector<char>> results[2];
    for (int backwards = 0; backwards < 2; backwards++) {
        for (uint32_t i = 0; i < count; i++) memcpy(launch.buffers[i], given[i].data(), launch.sizes[i]);
        run_all(backwards);
        for (uint32_t i = 0; i < count; i++) {
            const char *start = static_cast<char *>(launch.buffers[i]);
            results[backwards].emplace_back(start, start + launch.sizes[i]);
        }
    }
    if (results[0] != results[1]) fail("the result depends on the order of threads");
    for (const std::vector<char> &bytes : results[0]) fwrite(bytes.data(), 1, bytes.size(), stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
