// Shared by the addons: exporting calls to JavaScript, and reading their arguments. Every argument is checked: a wrong type,
// a number that is not an integer, or one out of bounds throws an exception there, and the call does nothing.
#pragma once

#include <node_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_set>

struct Export {
  const char* name;
  napi_callback call;
};

// In each NAPI_MODULE_INIT: `return give(env, exports, {{"name", call}, ...});`.
template <size_t count>
napi_value give(napi_env env, napi_value exports, const Export (&calls)[count]) {
  for (const Export& each : calls) {
    napi_value made;
    napi_create_function(env, each.name, NAPI_AUTO_LENGTH, each.call, nullptr, &made);
    napi_set_named_property(env, exports, each.name, made);
  }
  return exports;
}

// Calls a function of JavaScript with a count, from the event loop. What it throws is an uncaught exception of the program.
inline void callWith(napi_env env, napi_ref callback, size_t count) {
  napi_handle_scope scope;
  napi_open_handle_scope(env, &scope);
  napi_value function, receiver, argument, result;
  napi_get_reference_value(env, callback, &function);
  napi_get_global(env, &receiver);
  napi_create_uint32(env, static_cast<uint32_t>(count), &argument);
  if (napi_make_callback(env, nullptr, receiver, function, 1, &argument, &result) == napi_pending_exception) {
    napi_value error;
    napi_get_and_clear_last_exception(env, &error);
    napi_fatal_exception(env, error);
  }
  napi_close_handle_scope(env, scope);
}

// Throws an Error with the words of an error number.
inline napi_value fail(napi_env env, const char* what, int code) {
  std::string message = std::string(what) + ": " + strerror(code);
  napi_throw_error(env, nullptr, message.c_str());
  return nullptr;
}

inline napi_value numberOf(napi_env env, double value) {
  napi_value result;
  napi_create_double(env, value, &result);
  return result;
}

// Doubles hold whole numbers exactly below this one.
constexpr double kExact = 9007199254740992.0;

struct Bytes {
  uint8_t* data = nullptr;
  size_t length = 0;
};

// The externals that this addon made on this thread: one of another addon, or anything else, is none of them.
template <typename Held>
class Externals {
 public:
  static napi_value make(napi_env env, Held* held, napi_finalize finalize) {
    napi_value result = nullptr;
    if (napi_create_external(env, held, finalize, nullptr, &result) == napi_ok) live().insert(held);
    return result;
  }
  // To be called by `finalize`.
  static void forget(Held* held) { live().erase(held); }
  static Held* find(napi_env env, napi_value value) {
    void* data = nullptr;
    if (napi_get_value_external(env, value, &data) != napi_ok) return nullptr;
    Held* held = static_cast<Held*>(data);
    return live().count(held) == 0 ? nullptr : held;
  }

 private:
  static std::unordered_set<Held*>& live() {
    thread_local std::unordered_set<Held*> held;
    return held;
  }
};

// The arguments of one call. After the first that is wrong `good` is false and an exception waits: the call must return.
class Arguments {
 public:
  // `name`: of the call, for the exceptions.
  Arguments(napi_env env, napi_callback_info info, const char* name) : env_(env), name_(name) {
    size_t found = kMax;
    // What was not given is undefined.
    napi_get_cb_info(env, info, &found, values_, nullptr, nullptr);
  }

  bool good = true;

  napi_value at(size_t index) const { return values_[index]; }

  // A whole number from `least` to `most`.
  uint64_t integer(size_t index, uint64_t least, uint64_t most) {
    double found = 0;
    if (!good) return least;
    if (napi_get_value_double(env_, values_[index], &found) != napi_ok) return wrong(index, "is no number", false), least;
    // NaN fails both comparisons.
    bool fits = found >= static_cast<double>(least) && found <= static_cast<double>(most) && found < kExact;
    if (!fits || static_cast<double>(static_cast<uint64_t>(found)) != found) {
      return wrong(index, "is no whole number within its bounds", true), least;
    }
    return static_cast<uint64_t>(found);
  }

  // Any finite number from 0 on.
  double amount(size_t index) {
    double found = 0;
    if (!good) return 0;
    if (napi_get_value_double(env_, values_[index], &found) != napi_ok) return wrong(index, "is no number", false), 0;
    if (!(found >= 0 && found < kExact)) return wrong(index, "is no amount", true), 0;
    return found;
  }

  bool truth(size_t index) {
    bool found = false;
    if (good && napi_get_value_bool(env_, values_[index], &found) != napi_ok) wrong(index, "is no boolean", false);
    return found;
  }

  // Text without a zero in it, which would end it early elsewhere.
  std::string text(size_t index, size_t most) {
    size_t length = 0;
    if (!good) return "";
    if (napi_get_value_string_utf8(env_, values_[index], nullptr, 0, &length) != napi_ok) return wrong(index, "is no text", false), "";
    if (length > most) return wrong(index, "is too long", true), "";
    std::string found(length + 1, '\0');
    napi_get_value_string_utf8(env_, values_[index], &found[0], length + 1, &length);
    found.resize(length);
    if (found.find('\0') != std::string::npos) wrong(index, "has a zero in it", true);
    return found;
  }

  // The bytes of a Uint8Array whose memory is still there.
  Bytes bytes(size_t index) {
    auto found = elements<uint8_t>(index, napi_uint8_array, "is no Uint8Array");
    return Bytes{found.start, found.count};
  }

  template <typename Element>
  struct Elements {
    Element* start = nullptr;
    size_t count = 0;
  };

  // The same of another typed array. `otherwise`: what to say of anything else.
  template <typename Element>
  Elements<Element> elements(size_t index, napi_typedarray_type wanted, const char* otherwise) {
    Elements<Element> found;
    if (!good) return found;
    napi_typedarray_type type;
    void* data = nullptr;
    if (napi_get_typedarray_info(env_, values_[index], &type, &found.count, &data, nullptr, nullptr) != napi_ok || type != wanted) {
      wrong(index, otherwise, false);
      return Elements<Element>{};
    }
    found.start = static_cast<Element*>(data);
    // Only an array without elements can have lost them.
    if (found.count == 0 && isDetached(index)) wrong(index, "was detached", false);
    return found;
  }

  // The same of memory that threads share: it cannot be taken away.
  template <typename Element>
  Elements<Element> shared(size_t index, napi_typedarray_type wanted, const char* otherwise) {
    Elements<Element> found = elements<Element>(index, wanted, otherwise);
    napi_value buffer = nullptr;
    bool isOwn = true;
    if (!good) return found;
    napi_get_typedarray_info(env_, values_[index], nullptr, nullptr, nullptr, &buffer, nullptr);
    if (napi_is_arraybuffer(env_, buffer, &isOwn) == napi_ok && !isOwn) return found;
    wrong(index, "is no shared memory", false);
    return Elements<Element>{};
  }

  template <typename Held>
  Held* external(size_t index) {
    if (!good) return nullptr;
    Held* held = Externals<Held>::find(env_, values_[index]);
    if (held == nullptr) wrong(index, "was not made by this addon", false);
    return held;
  }

  // Throws: a RangeError for a value that is out of its bounds, else a TypeError.
  void wrong(size_t index, const char* what, bool isRange) {
    good = false;
    std::string message = std::string(name_) + ": argument " + std::to_string(index + 1) + " " + what;
    if (isRange) napi_throw_range_error(env_, nullptr, message.c_str());
    else napi_throw_type_error(env_, nullptr, message.c_str());
  }

 private:
  bool isDetached(size_t index) const {
    napi_value buffer = nullptr;
    bool detached = false;
    return napi_get_typedarray_info(env_, values_[index], nullptr, nullptr, nullptr, &buffer, nullptr) == napi_ok &&
           napi_is_detached_arraybuffer(env_, buffer, &detached) == napi_ok && detached;
  }

  static constexpr size_t kMax = 12;
  napi_env env_;
  const char* name_;
  napi_value values_[kMax];
};
