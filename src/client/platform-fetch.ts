import { isHashNative } from './hash.js'
import type { FetchLike } from './service.js'

/** `fetch` as it was when the client was loaded: who replaces it later wants to see every request. */
export const usualFetch = globalThis.fetch

/** `fetch` copies a body twice before it sends it: what is shorter is not worth the way around it. */
const postedBytesMin = 1024 * 1024

/** `fetch` of the platform; in Node long bodies are sent without a copy. */
export const platformFetch: FetchLike = async (url, init) => {
  const body = init?.body
  return isHashNative && body instanceof Uint8Array && body.length >= postedBytesMin
    ? (await import('./node-post.js')).nodePost(url, { ...init, body }, usualFetch)
    : fetch(url, init)
}
