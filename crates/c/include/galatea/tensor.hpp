// Tensors, and buffers whose memory they share.

#ifndef GALATEA_TENSOR_HPP
#define GALATEA_TENSOR_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "engine.hpp"
#include "result.hpp"

namespace galatea {

using Shape = std::vector<int64_t>;

namespace detail {

// Number of the type of C++ elements.
template <class T> constexpr int32_t type_of() {
    if constexpr (std::is_same_v<T, bool>) {
        return GALATEA_TYPE_BOOL;
    } else if constexpr (std::is_same_v<T, float>) {
        return GALATEA_TYPE_FP32;
    } else if constexpr (std::is_same_v<T, double>) {
        return GALATEA_TYPE_FP64;
    } else {
        static_assert(std::is_integral_v<T>, "tensors have elements of numbers");
        constexpr int32_t is_signed[] = {0, GALATEA_TYPE_INT8, GALATEA_TYPE_INT16, 0, GALATEA_TYPE_INT32,
                                         0, 0,                 0,                  GALATEA_TYPE_INT64};
        constexpr int32_t is_unsigned[] = {0, GALATEA_TYPE_UINT8, GALATEA_TYPE_UINT16, 0, GALATEA_TYPE_UINT32,
                                           0, 0,                  0,                   GALATEA_TYPE_UINT64};
        return std::is_signed_v<T> ? is_signed[sizeof(T)] : is_unsigned[sizeof(T)];
    }
}

} // namespace detail

// A tensor. It never changes.
class Tensor {
public:
    Tensor() = default;

    // Copies elements.
    template <class T> static Returned<Tensor> Copy(const Shape &shape, const T *data, size_t count) {
        Tensor tensor;
        const Status status = galatea_tensor_create(detail::type_of<T>(), shape.data(), shape.size(), data,
                                                    count * sizeof(T), tensor.handle_.place());
        return detail::finish(status, std::move(tensor));
    }

    template <class T> static Returned<Tensor> Copy(const Shape &shape, const std::vector<T> &data) {
        return Copy(shape, data.data(), data.size());
    }

    // Takes elements over without a copy.
    template <class T> static Returned<Tensor> Take(const Shape &shape, std::vector<T> &&data) {
        auto owned = std::make_unique<std::vector<T>>(std::move(data));
        Tensor tensor;
        const Status status = galatea_tensor_wrap(
            detail::type_of<T>(), shape.data(), shape.size(), owned->data(), owned->size() * sizeof(T),
            [](void *context) { delete static_cast<std::vector<T> *>(context); }, owned.get(),
            tensor.handle_.place());
        if (status == GALATEA_STATUS_OK) {
            // The callback deletes it.
            static_cast<void>(owned.release());
        }
        return detail::finish(status, std::move(tensor));
    }

    // Copies texts.
    static Returned<Tensor> Strings(const Shape &shape, const std::vector<std::string> &texts) {
        std::vector<const char *> starts;
        std::vector<size_t> sizes;
        for (const auto &text : texts) {
            starts.push_back(text.data());
            sizes.push_back(text.size());
        }
        Tensor tensor;
        const Status status = galatea_tensor_create_strings(shape.data(), shape.size(), starts.data(), sizes.data(),
                                                            texts.size(), tensor.handle_.place());
        return detail::finish(status, std::move(tensor));
    }

    // Tells type and shape. The lengths belong to the tensor.
    Returned<galatea_tensor_info> Info() const {
        auto info = detail::sized<galatea_tensor_info>();
        const Status status = galatea_tensor_describe(get(), &info);
        return detail::finish(status, info);
    }

    // Copies the elements out.
    template <class T> Returned<std::vector<T>> ToVector() const {
        auto info = detail::sized<galatea_tensor_info>();
        Status status = galatea_tensor_describe(get(), &info);
        if (status == GALATEA_STATUS_OK && info.value_type != detail::type_of<T>()) {
            return detail::refuse<std::vector<T>>(GALATEA_STATUS_INVALID_ARGUMENT,
                                                  "the tensor has elements of another type");
        }
        std::vector<T> elements(status == GALATEA_STATUS_OK ? info.elements : 0);
        if (status == GALATEA_STATUS_OK) {
            status = galatea_tensor_copy(get(), elements.data(), elements.size() * sizeof(T));
        }
        return detail::finish(status, std::move(elements));
    }

    // Gives the bytes of the elements, which live as long as the tensor.
    Returned<const void *> Data() const {
        const void *data = nullptr;
        const Status status = galatea_tensor_data(get(), &data, nullptr);
        return detail::finish(status, data);
    }

    // Copies one text out.
    Returned<std::string> StringAt(size_t index) const {
        const char *data = nullptr;
        size_t length = 0;
        const Status status = galatea_tensor_string(get(), index, &data, &length);
        return detail::finish(status, data == nullptr ? std::string() : std::string(data, length));
    }

    galatea_tensor *get() const noexcept { return handle_.get(); }
    galatea_tensor **place() { return handle_.place(); }

private:
    detail::Handle<galatea_tensor, galatea_tensor_free> handle_;
};

// Memory that the program writes and models read without a copy.
class Buffer {
public:
    Buffer() = default;

    static Returned<Buffer> Create(galatea_engine *engine, size_t bytes) {
        Buffer buffer;
        Status status = galatea_buffer_create(engine, bytes, buffer.handle_.place());
        if (status == GALATEA_STATUS_OK) {
            status = galatea_buffer_data(buffer.get(), &buffer.data_, &buffer.bytes_);
        }
        return detail::finish(status, std::move(buffer));
    }

    // The memory. It must not be written while a run reads a tensor of it.
    void *data() const noexcept { return data_; }
    template <class T> T *as() const noexcept { return static_cast<T *>(data_); }
    size_t size() const noexcept { return bytes_; }

    // Makes a tensor of the begin of the buffer, without a copy.
    template <class T> Returned<Tensor> View(const Shape &shape) const {
        Tensor tensor;
        const Status status =
            galatea_buffer_tensor(get(), detail::type_of<T>(), shape.data(), shape.size(), tensor.place());
        return detail::finish(status, std::move(tensor));
    }

    galatea_buffer *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<galatea_buffer, galatea_buffer_free> handle_;
    void *data_ = nullptr;
    size_t bytes_ = 0;
};

} // namespace galatea

#endif // GALATEA_TENSOR_HPP
