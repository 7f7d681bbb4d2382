/** What sends the requests of Node's `fetch`. */
interface Dispatcher {
  readonly dispatch?: unknown
}

function memberOf(one: object, name: string): unknown {
  const symbol = Object.getOwnPropertySymbols(one).find(({ description }) => description === name)
  return symbol && (one as Record<symbol, unknown>)[symbol]
}

/**
 * Whether a dispatcher is like the one that `fetch` makes for itself. An Agent with options may go through a proxy (`connect`),
 * believe other authorities or have other limits, and what is composed of one may change each request.
 */
function isUsual(one: Dispatcher | undefined): boolean {
  if (one === undefined) return true
  const kind = Object.getPrototypeOf(one) as
    | (Dispatcher & { readonly constructor?: { readonly name: string } })
    | null
  const [options, factory] = [memberOf(one, 'options'), memberOf(one, 'factory')]
  return (
    kind?.constructor?.name === 'Agent' &&
    one.dispatch === kind.dispatch &&
    typeof factory === 'function' &&
    factory.name === 'defaultFactory' &&
    // Without options there is a bound at most, which bounds nothing.
    Object.values(options ?? {}).every((value) => value === undefined || value === Number.POSITIVE_INFINITY)
  )
}

/** Whether a function is Node's `fetch`, by its text: a program may have replaced that before the client was loaded. */
function isNodes(one: typeof fetch): boolean {
  return Function.prototype.toString.call(one).includes('internal/deps/undici')
}

/** A program may have replaced `fetch`, or configured it to use a proxy. */
function isFetch(usual: typeof fetch): boolean {
  const dispatchers = Object.getOwnPropertySymbols(globalThis)
    .filter(({ description }) => description?.startsWith('undici.globalDispatcher') === true)
    .map((symbol) => (globalThis as Record<symbol, Dispatcher | undefined>)[symbol])
  return dispatchers.every(isUsual) && globalThis.fetch === usual && isNodes(usual)
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
