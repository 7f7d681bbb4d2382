import { fieldsOf } from '../chain/json-fields.js'
import type { Subject } from '../moderation/moderation-messages.js'
import { type ModerationStore, type SharedBlock, sharedKey } from '../moderation/moderation-store.js'
import { readSubject } from '../moderation/subject.js'
import type { LocalRegistry, SharedGrant, SharedName } from '../names/local-registry.js'
import { parseName } from '../names/name.js'
import { readRecord } from '../names/name-record.js'
import type { SharedChange, SharedEntry, SharedSide } from './shared-entries.js'

/** What the database says is checked like what a stranger says: an entry that no machine of ours can have written is left out. */
function subjectOfKey(text: string): Subject | undefined {
  const [, kind, key] = /^(id|hash|name):(.+)$/s.exec(text) ?? []
  if (kind !== 'id' && kind !== 'hash' && kind !== 'name') return undefined
  const subject = readSubject(kind, key ?? '')
  return typeof subject === 'string' || sharedKey(subject) !== text ? undefined : subject
}

function blockOf({ key, body }: SharedEntry): SharedBlock | undefined {
  const subject = subjectOfKey(key)
  if (subject === undefined) return undefined
  if (body === undefined) return { subject, blocked: undefined }
  const { source, notes, blockedAtSeconds } = fieldsOf(body) ?? {}
  const text = (given: unknown): string => (typeof given === 'string' ? given : '')
  const isTime = Number.isSafeInteger(blockedAtSeconds) && Number(blockedAtSeconds) >= 0
  const seconds = isTime ? Math.min(Number(blockedAtSeconds), 2 ** 32 - 1) : 0
  // A block without a readable reason is a block.
  return { subject, blocked: { source: text(source), notes: text(notes), blockedAtSeconds: seconds } }
}

/** The block list of this machine. */
export function sharedBlocks(store: ModerationStore, now: () => number): SharedSide {
  const seconds = (): number => Math.floor(now() / 1000)
  const blocks = (entries: readonly SharedEntry[]): SharedBlock[] =>
    entries.flatMap((entry) => blockOf(entry) ?? [])
  return {
    lists: ['blocks'],
    position: () => store.unsharedKeys.position(),
    shareAll: (position, isRestored) => store.shareAll(position, isRestored),
    get unsharedCount() {
      return store.unsharedKeys.count
    },
    unshared: (limit) =>
      store.unsharedKeys.list(limit).map(({ key, token, isInitial }): SharedChange => {
        const subject = subjectOfKey(key)
        const found = subject && store.find(subject)
        const { source, notes, blockedAtSeconds } = found ?? {}
        const body = found === undefined ? undefined : JSON.stringify({ source, notes, blockedAtSeconds })
        return { list: 'blocks', key, body, rank: 0, token, isInitial }
      }),
    settle(changes, instead) {
      store.settleShared(changes)
      if (instead.length > 0) store.takeOver(blocks(instead), seconds())
    },
    takeOver(entries, position) {
      const count = store.takeOver(blocks(entries), seconds(), position)
      if (count === 0) return
      const [first] = entries
      const isOne = entries.length === 1 && first !== undefined
      const by = isOne ? `cluster: ${first.node}` : 'cluster'
      const released = isOne && first.body === undefined ? 'release' : 'block'
      store.note({
        atSeconds: seconds(),
        by,
        action: isOne ? released : 'import',
        what: isOne ? first.key.replace(':', ' ') : `${count} changes of the cluster`,
      })
    },
  }
}

function nameOfEntry({ key, body, rank }: SharedEntry): SharedName | undefined {
  const name = parseName(key)
  if (name?.full !== key) return undefined
  if (body === undefined) return { name, record: undefined, changedMs: rank }
  const record = readRecord(fieldsOf(body) ?? {})
  return record && { name, record, changedMs: rank }
}

function grantOf({ key, body }: SharedEntry): SharedGrant | undefined {
  const [name, spelled, ...more] = key.split('\n')
  if (name === undefined || spelled === undefined || more.length > 0) return undefined
  const address = body === undefined ? spelled : fieldsOf(body)?.address
  if (typeof address !== 'string' || address.toLowerCase() !== spelled.toLowerCase()) return undefined
  return { name, address, isGranted: body !== undefined }
}

function stateOf(entry: SharedEntry): SharedName | SharedGrant | undefined {
  return entry.list === 'names' ? nameOfEntry(entry) : grantOf(entry)
}

/** The names of this machine, and who may set them. */
export function sharedNames(registry: LocalRegistry): SharedSide {
  const states = (entries: readonly SharedEntry[]): (SharedName | SharedGrant)[] =>
    entries.flatMap((entry) => stateOf(entry) ?? [])
  return {
    lists: ['names', 'grants'],
    position: () => registry.unsharedKeys.position(),
    shareAll: (position) => registry.shareAll(position),
    get unsharedCount() {
      return registry.unsharedKeys.count
    },
    unshared: (limit) =>
      registry.unshared(limit).map(({ given: { key, token, isInitial }, state }): SharedChange => {
        const given = { key: key.slice(key.indexOf(' ') + 1), token, isInitial }
        if ('isGranted' in state) {
          const { address, isGranted } = state
          return {
            ...given,
            list: 'grants',
            body: isGranted ? JSON.stringify({ address }) : undefined,
            rank: 0,
          }
        }
        const { record, changedMs } = state
        // A name that nobody ever changed is of an early version.
        const rank = Math.max(1, changedMs)
        return { ...given, list: 'names', body: record && JSON.stringify(record), rank }
      }),
    settle(changes, instead) {
      registry.settleShared(
        changes.map(({ list, key, ...change }) => ({
          ...change,
          key: `${list === 'names' ? 'name' : 'grant'} ${key}`,
        })),
      )
      if (instead.length > 0) registry.takeOver(states(instead))
    },
    takeOver: (entries, position) => registry.takeOver(states(entries), position),
  }
}
