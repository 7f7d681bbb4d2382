import type { Clock } from '../actor/clock.js'
import { isRefusal } from '../format/refusal.js'
import { isResolved, isUntrailed, type Name, type NameRecord, type Resolver } from './names-port.js'

/** A record as a resolver gave it earlier. */
export interface Recalled {
  readonly record: NameRecord
  readonly resolvedAtMs: number
}

/** A memory of names that outlives this process, and that other gateways may share. */
export interface NameMemory {
  /** Undefined also where it cannot be reached. Never rejects. */
  recall(resolver: Resolver['label'], name: Name): Promise<Recalled | undefined>
  /** Does not wait; a record that cannot be stored is dropped. */
  keep(resolver: Resolver['label'], name: Name, recalled: Recalled): void
}

export interface RememberedOptions {
  /** Replaces the TTL of records. */
  readonly overrideTtlSeconds?: number
  /** A name that was resolved may be answered for so long while the resolver fails. */
  readonly staleMs: number
  /** So long before its end a name is resolved anew. */
  readonly refreshMs: number
}

/** A resolver that is only called for what the memory does not hold, or not fresh; where it fails, old records still count. */
export function remembered(
  resolver: Resolver,
  memory: NameMemory,
  { overrideTtlSeconds, staleMs, refreshMs }: RememberedOptions,
  clock: Clock,
): Resolver {
  const { label, remote } = resolver
  return {
    label,
    remote,
    async resolve(name, asking) {
      const known = await memory.recall(label, name)
      // Other gateways' clocks may go ahead of ours.
      const resolvedAtMs = Math.min(known?.resolvedAtMs ?? 0, clock.now())
      const ageMs = clock.now() - resolvedAtMs
      const ttlMs = (overrideTtlSeconds ?? known?.record.ttlSeconds ?? 0) * 1000
      const old = known === undefined ? undefined : { ...known.record, resolvedAtMs }
      if (old !== undefined && ageMs < ttlMs - Math.min(refreshMs, ttlMs / 4)) return old
      const verdict = await resolver.resolve(name, asking)
      if (isResolved(verdict)) {
        // Other gateways share the memory: an answer to one client's trail is not for all.
        if (isUntrailed(asking)) memory.keep(label, name, { record: verdict, resolvedAtMs: clock.now() })
      } else if (isRefusal(verdict) && old !== undefined && ageMs < staleMs) return old
      return verdict
    },
  }
}
