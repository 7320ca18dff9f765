// Failures of the C++ library: exceptions, or results where exceptions are switched off.

#ifndef GALATEA_RESULT_HPP
#define GALATEA_RESULT_HPP

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "../galatea.h"

namespace galatea {

using Status = galatea_status;

#ifdef GALATEA_NO_EXCEPTIONS

// A failure: its code, and a sentence that says what was found and what was expected.
class Error {
public:
    Error(Status status, std::string message) : status_(status), message_(std::move(message)) {}
    Status status() const noexcept { return status_; }
    const char *what() const noexcept { return message_.c_str(); }

private:
    Status status_;
    std::string message_;
};

// A value, or the failure in its place. value() of a failure is undefined: ask first.
template <class T> class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::move(value)) {}
    Result(Error error) : error_(std::move(error)) {}
    explicit operator bool() const noexcept { return value_.has_value(); }
    T &value() & { return *value_; }
    T &&value() && { return std::move(*value_); }
    T &operator*() & { return *value_; }
    T *operator->() { return &*value_; }
    const Error &error() const { return *error_; }

private:
    std::optional<T> value_;
    std::optional<Error> error_;
};

// Nothing, or a failure.
template <> class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}
    explicit operator bool() const noexcept { return !error_; }
    const Error &error() const { return *error_; }

private:
    std::optional<Error> error_;
};

template <class T> using Returned = Result<T>;

#else

// A failure: its code, and a sentence that says what was found and what was expected.
class Error : public std::runtime_error {
public:
    Error(Status status, const std::string &message) : std::runtime_error(message), status_(status) {}
    Status status() const noexcept { return status_; }

private:
    Status status_;
};

template <class T> using Returned = T;

#endif

namespace detail {

// Makes the failure of a call of this thread.
inline Error failure(Status status) {
    return Error(status, galatea_last_error());
}

// Hands a value on where the call before it did what it says.
template <class T> Returned<T> finish(Status status, T value) {
    if (status != GALATEA_STATUS_OK) {
#ifdef GALATEA_NO_EXCEPTIONS
        return failure(status);
#else
        throw failure(status);
#endif
    }
    return value;
}

inline Returned<void> finish(Status status) {
    if (status != GALATEA_STATUS_OK) {
#ifdef GALATEA_NO_EXCEPTIONS
        return failure(status);
#else
        throw failure(status);
#endif
    }
    return Returned<void>();
}

// Refuses a call with a sentence of this header's own.
template <class T> Returned<T> refuse(Status status, const std::string &message) {
#ifdef GALATEA_NO_EXCEPTIONS
    return Error(status, message);
#else
    throw Error(status, message);
#endif
}

// Owner of a handle of C.
template <class T, galatea_status (*Free)(T *)> class Handle {
public:
    Handle() = default;
    explicit Handle(T *handle) : handle_(handle) {}
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Handle &operator=(Handle &&other) noexcept {
        if (this != &other) {
            reset();
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    ~Handle() { reset(); }
    T *get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != nullptr; }
    // Frees the object; nothing where there is none.
    void reset() noexcept {
        if (T *handle = std::exchange(handle_, nullptr)) {
            Free(handle);
        }
    }
    // Place where a call writes a new handle.
    T **place() {
        reset();
        return &handle_;
    }

private:
    T *handle_ = nullptr;
};

using Text = Handle<galatea_text, galatea_text_free>;

// Copies a text that a call has returned.
inline std::string text(const Text &handle) {
    const char *data = nullptr;
    size_t length = 0;
    if (!handle || galatea_text_data(handle.get(), &data, &length) != GALATEA_STATUS_OK) {
        return std::string();
    }
    return std::string(data, length);
}

// A structure whose size field is set and whose other fields are zero.
template <class T> T sized() {
    T value{};
    value.size = sizeof(T);
    return value;
}

} // namespace detail

// Checks that this header and the library fit together.
inline Returned<void> RequireAbi() {
    return detail::finish(galatea_require_abi(GALATEA_ABI_VERSION));
}

} // namespace galatea

#endif // GALATEA_RESULT_HPP
