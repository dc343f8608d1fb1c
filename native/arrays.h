// Arrays from Python, checked one by one: what is wrong with them is said by name, and nothing is
// read that is not there.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <vector>

namespace nb = nanobind;

class Arrays {
  public:
    explicit Arrays(nb::dict dict) : dict_(dict) {}

    template <class T>
    T* writable(const char* name, std::vector<int64_t> shape) {
        return checked<T, nb::ndarray<>>(name, shape, "writable ");
    }
    template <class T>
    const T* readable(const char* name, std::vector<int64_t> shape) {
        return checked<T, nb::ndarray<nb::ro>>(name, shape, "");
    }
    bool has(const char* name) const { return dict_.contains(name); }

    // The shape of an array that decides the others.
    std::vector<int64_t> shape(const char* name, size_t dims) {
        nb::ndarray<nb::ro> array;
        if (!has(name) || !nb::try_cast(dict_[name], array) || array.ndim() != dims)
            throw nb::value_error((std::string(name) + " must be an array with " +
                                   std::to_string(dims) + " dimensions.")
                                      .c_str());
        return std::vector<int64_t>(array.shape_ptr(), array.shape_ptr() + dims);
    }

  private:
    nb::dict dict_;
    std::vector<nb::object> kept_;

    template <class T, class Array>
    auto checked(const char* name, const std::vector<int64_t>& shape, const char* how) -> T* {
        Array array;
        bool fine = has(name) && nb::try_cast(dict_[name], array, false) &&
                    array.dtype() == nb::dtype<T>() && array.ndim() == shape.size() &&
                    array.device_type() == nb::device::cpu::value;
        int64_t stride = 1;
        for (size_t d = shape.size(); fine && d-- > 0; stride *= shape[d])
            fine = (int64_t)array.shape(d) == shape[d] &&
                   (shape[d] == 1 || array.size() == 0 || array.stride(d) == stride);
        if (!fine) {
            std::string text = std::string(name) + " must be a " + how + "C-contiguous array of " +
                               kind<T>() + " of shape (";
            for (size_t d = 0; d < shape.size(); d++)
                text += (d ? ", " : "") + std::to_string(shape[d]);
            throw nb::value_error((text + ").").c_str());
        }
        kept_.push_back(nb::object(dict_[name]));
        return (T*)array.data();
    }
    template <class T>
    static const char* kind() {
        if (std::is_same_v<T, float>) return "float32";
        if (std::is_same_v<T, double>) return "float64";
        if (std::is_same_v<T, int32_t>) return "int32";
        if (std::is_same_v<T, uint32_t>) return "uint32";
        if (std::is_same_v<T, int8_t>) return "int8";
        return "bool";
    }
};
