// A parser that returns one box with the sum of its layer, and on the way does what the layer's first
// number says; the second is its argument.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "nvdsinfer_custom_impl.h"

template <typename Do>
static void for_each_socket(Do act) {
    for (int fd = 3; fd < 512; ++fd) {
        char link[64], target[64] = {};
        std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, target, sizeof target - 1) > 0 && std::strstr(target, "socket:")) act(fd);
    }
}

extern "C" bool ParseUnruly(const std::vector<NvDsInferLayerInfo> &layers,
                            const NvDsInferNetworkInfo &, const NvDsInferParseDetectionParams &,
                            std::vector<NvDsInferObjectDetectionInfo> &objects) {
    float *data = static_cast<float *>(layers[0].buffer);
    const unsigned int count = layers[0].inferDims.numElements;
    float sum = 0;
    for (unsigned int i = 2; i < count; ++i) sum += data[i];
    switch (static_cast<int>(data[0])) {
        case 1:  // a thread that writes when the call is over
            std::thread([data, count] {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                data[count - 1] = 1e6f;
            }).detach();
            break;
        case 2: {  // in place, with all signals blocked
            sigset_t all;
            sigfillset(&all);
            sigprocmask(SIG_BLOCK, &all, nullptr);
            data[1] = 0;
            break;
        }
        case 3:  // both processes return
            fork();
            break;
        case 4:
            syscall(SYS_tkill, static_cast<pid_t>(data[1]), SIGUSR1);
            break;
        case 5:  // fill what the application is woken by
            for_each_socket([](int fd) {
                while (send(fd, "full", 4, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
                }
            });
            for (;;) pause();
        case 6:
            for_each_socket([](int fd) { shutdown(fd, SHUT_RDWR); });
            for (;;) pause();
        case 7:
            for (volatile int i = 0;; i = i + 1) {
            }
    }
    NvDsInferObjectDetectionInfo box = {};
    box.left = sum;
    box.width = box.height = 1;
    objects.push_back(box);
    return true;
}
