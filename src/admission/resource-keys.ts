import { Key, type Secret } from './bucket-key.js'
import { hostOf, type Named, pathOf } from './buckets.js'

/** Keys remembered for a host and a method, twice: about 400 bytes each at most. */
const keysMax = 2048
/** Longer paths are not worth their memory. */
const longPath = 256
/** Clients spell hosts in different ways: a few spellings are remembered. */
const hostsMax = 16

/** The keys of recently requested resources: hashing a name takes longer than the rest of a take. */
export class ResourceKeys {
  /** As it was last sent. */
  #host: string | undefined
  #lowerHost = ''
  #method = ''
  #young = new Map<string, Key>()
  #old: ReadonlyMap<string, Key> = new Map()
  readonly #byHost = new Map<string, Map<string, Key>>()

  constructor(private readonly secret: Secret) {}

  of(named: Named): Key {
    const host = named.header('host')
    const { method } = named
    if (host !== this.#host || method !== this.#method) this.#turn(host, method, hostOf(named))
    const path = pathOf(named)
    const known = this.#young.get(path)
    if (known !== undefined) return known
    const key = this.#old.get(path) ?? Key.ofNames(this.#lowerHost, method, path, this.secret)
    if (path.length > longPath) return key
    if (this.#young.size >= keysMax) {
      this.#old = new Map(this.#young)
      this.#young.clear()
    }
    this.#young.set(path, key)
    return key
  }

  #turn(host: string | undefined, method: string, lowerHost: string): void {
    const name = `${method} ${lowerHost}`
    if (this.#byHost.size >= hostsMax && !this.#byHost.has(name)) this.#byHost.clear()
    const keys = this.#byHost.get(name) ?? new Map<string, Key>()
    this.#byHost.set(name, keys)
    this.#host = host
    this.#lowerHost = lowerHost
    this.#method = method
    this.#young = keys
    this.#old = new Map()
  }
}
