import type { Route } from './parts.js'

/**
 * A handler that is loaded at the first request for it: what a thread is never asked for costs it neither time at the start nor
 * memory. Later requests are answered as if it had always been there; a load that failed is tried again.
 */
export function late(load: () => Promise<Route['handle']>): Route['handle'] {
  let loaded: Route['handle'] | undefined
  let loading: Promise<Route['handle']> | undefined
  const begin = async (): Promise<Route['handle']> => {
    try {
      loaded = await load()
      return loaded
    } finally {
      loading = undefined
    }
  }
  return (...asked) => {
    if (loaded !== undefined) return loaded(...asked)
    loading ??= begin()
    return loading.then((handle) => handle(...asked))
  }
}
