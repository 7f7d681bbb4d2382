/** A program may have replaced `fetch`, or told it to go through a proxy. */
function isFetch(usual: typeof fetch): boolean {
  const dispatchers = Object.getOwnPropertySymbols(globalThis)
    .filter(({ description }) => description?.startsWith('undici.globalDispatcher') === true)
    .map((symbol) => (globalThis as Record<symbol, { constructor?: { name?: string } } | undefined>)[symbol])
  const isPlain = dispatchers.every((one) => one === undefined || one.constructor?.name === 'Agent')
  return isPlain && globalThis.fetch === usual
}

/**
 * A module of Node that does what `fetch` does, only faster. Undefined where `fetch` is not `usual` any more, the platform's own,
 * and on other platforms: they imitate Node's modules, but not each option of them.
 */
export function besideFetch<Module>(name: string, usual: typeof fetch): Module | undefined {
  const { process, Bun, Deno } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => Module | undefined }
    Bun?: unknown
    Deno?: unknown
  }
  if (Bun !== undefined || Deno !== undefined || !isFetch(usual)) return undefined
  return process?.getBuiltinModule?.(name)
}
