// How an addon hands its calls to JavaScript: in each NAPI_MODULE_INIT, `return give(env, exports, {{"name", call}, ...});`.
#pragma once

#include <node_api.h>

#include <cstddef>

struct Export {
  const char* name;
  napi_callback call;
};

template <size_t count>
napi_value give(napi_env env, napi_value exports, const Export (&calls)[count]) {
  for (const Export& each : calls) {
    napi_value made;
    napi_create_function(env, each.name, NAPI_AUTO_LENGTH, each.call, nullptr, &made);
    napi_set_named_property(env, exports, each.name, made);
  }
  return exports;
}
