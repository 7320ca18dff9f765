// The library of Galatea for C++17: classes over galatea.h, in headers alone.
//
// Objects are owned by one variable each and may be moved, not copied. Failures are exceptions of type
// galatea::Error. Where GALATEA_NO_EXCEPTIONS is defined, each call returns a galatea::Result in place of its value.
// docs/c-api.md explains the classes.

#ifndef GALATEA_HPP
#define GALATEA_HPP

#include "galatea/engine.hpp"
#include "galatea/models.hpp"
#include "galatea/providers.hpp"
#include "galatea/result.hpp"
#include "galatea/tensor.hpp"
#include "galatea/tools.hpp"

#endif // GALATEA_HPP
