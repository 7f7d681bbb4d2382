import type { NodeHttp } from './node-post.js'
import type { FetchLike } from './service.js'

/** As it was when the client was loaded: who replaces it later wants to see every request. */
const usual = globalThis.fetch

/** `fetch` copies a body twice before it sends it: what is shorter is not worth the way around it. */
const postedBytesMin = 1024 * 1024

/** A program may have replaced `fetch`, or told it to go through a proxy. */
function isFetchUsual(): boolean {
  const dispatchers = Object.getOwnPropertySymbols(globalThis)
    .filter(({ description }) => description?.startsWith('undici.globalDispatcher') === true)
    .map((symbol) => (globalThis as Record<symbol, { constructor?: { name?: string } } | undefined>)[symbol])
  const isPlain = dispatchers.every((one) => one === undefined || one.constructor?.name === 'Agent')
  return isPlain && globalThis.fetch === usual
}

/**
 * A module of Node that does what `fetch` does, only faster. Undefined where `fetch` has to do it, and on other platforms: they
 * imitate Node's modules, but not each option of them.
 */
export function besideFetch<Module>(name: string): Module | undefined {
  const { process, Bun, Deno } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => Module | undefined }
    Bun?: unknown
    Deno?: unknown
  }
  if (Bun !== undefined || Deno !== undefined || !isFetchUsual()) return undefined
  return process?.getBuiltinModule?.(name)
}

/** `fetch` of the platform; in Node long bodies are sent without a copy. */
export const platformFetch: FetchLike = async (url, init) => {
  const body = init?.body
  if (!(body instanceof Uint8Array) || body.length < postedBytesMin) return fetch(url, init)
  const http = besideFetch<NodeHttp>(url.startsWith('https:') ? 'node:https' : 'node:http')
  return http === undefined
    ? fetch(url, init)
    : (await import('./node-post.js')).nodePost(http, url, { ...init, body })
}
