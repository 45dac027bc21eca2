// Messages between the program for another processor's libraries and headrace, over pipes.
// Both are little-endian; numbers stand one behind the other, texts behind their size.
// The other side: src/headrace/custom/emulated/messages.py.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace headrace::emulated {

enum Operation : uint32_t {
    kLoad = 1,
    kFunction,
    kLayers,
    kParams,
    kCall,
    kCreators,
    kPlugin,
    kNetwork,
    kReply,     // to a question; any other request may come before it
    kCallBack,  // of an object that the library gave
    kMemory
};
enum Kind : uint32_t { kBoxes, kInstances, kAttributes, kMap, kInputs };
enum Status : uint32_t { kDone, kFailed, kThrew, kMissing, kNoResult, kAsks };

inline bool read_all(int file, void *to, size_t size) {
    auto at = static_cast<char *>(to);
    while (size) {
        const ssize_t count = read(file, at, size);
        if (count <= 0) return false;
        at += count;
        size -= static_cast<size_t>(count);
    }
    return true;
}

inline bool write_all(int file, const void *from, size_t size) {
    auto at = static_cast<const char *>(from);
    while (size) {
        const ssize_t count = write(file, at, size);
        if (count <= 0) return false;
        at += count;
        size -= static_cast<size_t>(count);
    }
    return true;
}

class Reader {
public:
    explicit Reader(const std::string &body) : at_(body.data()), end_(at_ + body.size()) {}

    template <typename T>
    T take() {
        T value;
        need(sizeof value);
        std::memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::string text() {
        const auto size = take<uint32_t>();
        need(size);
        std::string value(at_, size);
        at_ += size;
        return value;
    }

private:
    void need(size_t size) const {
        if (static_cast<size_t>(end_ - at_) < size)
            throw std::runtime_error("a message ends early");
    }
    const char *at_, *end_;
};

class Body {
public:
    template <typename T>
    Body &add(T value) {
        return bytes(&value, sizeof value);
    }
    Body &bytes(const void *from, size_t size) {
        if (size) data_.append(static_cast<const char *>(from), size);
        return *this;
    }
    Body &text(const char *words, size_t size) {
        add(static_cast<uint32_t>(size));
        return bytes(words, size);
    }
    Body &text(const std::string &words) { return text(words.data(), words.size()); }
    const std::string &data() const { return data_; }

private:
    std::string data_;
};

}  // namespace headrace::emulated
