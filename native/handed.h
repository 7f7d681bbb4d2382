// How an addon hands something to another one: it has no other way there than through JavaScript, so it goes as a tagged object.
#pragma once

#include <node_api.h>

namespace handed {

// An object for `take`. `thing` must outlive it; `over` is called with it when the object goes. The tag is that of this one kind of things:
// it changes with the type, so that addons of two builds never take each other's.
template <typename Thing>
napi_value give(napi_env env, Thing* thing, const napi_type_tag& tag, napi_finalize over = nullptr) {
  napi_value object = nullptr;
  napi_create_object(env, &object);
  bool isGood = napi_wrap(env, object, thing, over, nullptr, nullptr) == napi_ok && napi_type_tag_object(env, object, &tag) == napi_ok;
  return isGood ? object : nullptr;
}

// Null where `value` was not made by `give` with this tag.
template <typename Thing>
Thing* take(napi_env env, napi_value value, const napi_type_tag& tag) {
  bool isOurs = false;
  void* thing = nullptr;
  if (napi_check_object_type_tag(env, value, &tag, &isOurs) != napi_ok || !isOurs) return nullptr;
  return napi_unwrap(env, value, &thing) == napi_ok ? static_cast<Thing*>(thing) : nullptr;
}

}  // namespace handed
