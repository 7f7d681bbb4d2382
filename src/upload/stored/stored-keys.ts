import { type Id, idBytes, idOfBytes } from '../../format/id.js'

/** What the name of a group says of it. */
export interface GroupName {
  /** When its PUT began, to a second, by the store's clock: milliseconds since 1970. */
  readonly atMs: number
  readonly directoryBytes: number
  readonly headBytes: number
  readonly totalBytes: number
  /** 16 random letters of hex. */
  readonly random: string
  /** The machine that accepted its items. */
  readonly node: string
  /** A large item that is alone in its group: who has listed the name need not read the directory. */
  readonly only?: { readonly id: Id; readonly headerSize: number }
}

const shape =
  /^(\d{15})-(\d{1,9})-(\d{1,9})-(\d{1,15})-([0-9a-f]{16})(?:-([0-9a-f]{64})\.(\d{1,7}))?-([a-z0-9][a-z0-9.-]{0,79})$/

/** Names are in the order of time, whoever writes them. */
export function encodeGroupName({
  atMs,
  directoryBytes,
  headBytes,
  totalBytes,
  random,
  node,
  only,
}: GroupName): string {
  const item =
    only === undefined ? '' : `-${Buffer.from(idBytes(only.id)).toString('hex')}.${only.headerSize}`
  return `${timeWord(atMs)}-${directoryBytes}-${headBytes}-${totalBytes}-${random}${item}-${node}`
}

/** Undefined: it is the name of no group. */
export function decodeGroupName(text: string): GroupName | undefined {
  const [, time, directory, head, total, random = '', id, header, node = ''] = shape.exec(text) ?? []
  const [atMs, directoryBytes, headBytes, totalBytes] = [time, directory, head, total].map(Number) as [
    number,
    number,
    number,
    number,
  ]
  if (time === undefined || directoryBytes > headBytes || headBytes > totalBytes) return undefined
  const name = { atMs, directoryBytes, headBytes, totalBytes, random, node }
  if (id === undefined) return name
  const only = { id: idOfBytes(Buffer.from(id, 'hex')), headerSize: Number(header) }
  return only.headerSize > totalBytes - headBytes ? undefined : { ...name, only }
}

function timeWord(ms: number): string {
  return String(Math.max(0, Math.trunc(ms))).padStart(15, '0')
}

/** Keys of accepted uploads in the store, beside those of `TierKeys`. */
export class StoredKeys {
  constructor(private readonly prefix: string) {}

  /** Groups, then nodes. */
  get all(): string {
    return `${this.prefix}/sluice/uploads/`
  }

  get groups(): string {
    return `${this.all}log/`
  }

  group(name: string): string {
    return `${this.groups}${name}`
  }

  /** The name of a group; undefined where a key is none of one. */
  nameOf(key: string): string | undefined {
    const name = key.startsWith(this.groups) ? key.slice(this.groups.length) : undefined
    return name !== undefined && decodeGroupName(name) !== undefined ? name : undefined
  }

  /** Before all groups that were begun at this time of the store's clock, or later. */
  since(atMs: number): string {
    return `${this.groups}${timeWord(atMs)}`
  }

  /** Says which run of the machine with this name may write. */
  node(name: string): string {
    return `${this.all}nodes/${name}`
  }

  nodeOf(key: string): string | undefined {
    return behind(this.node(''), key)
  }

  /** There as long as another machine waits for a sign of this one. */
  question(machine: string): string {
    return `${this.all}questions/${machine}`
  }

  /** Put again and again while the store fails, to see whether it is well. */
  trial(machine: string): string {
    return `${this.all}trials/${machine}`
  }

  get takeovers(): string {
    return `${this.all}takeovers/`
  }

  /** Says which machine took the uploads under a name over; the highest number counts. */
  takeover(name: string, number: number): string {
    return `${this.takeovers}${name}/${number}`
  }

  takeoverOf(key: string): { readonly name: string; readonly number: number } | undefined {
    const [name, digits, ...more] = behind(this.takeovers, key)?.split('/') ?? []
    if (name === undefined || digits === undefined || more.length > 0 || !/^[1-9]\d{0,8}$/.test(digits))
      return
    return { name, number: Number(digits) }
  }
}

function behind(start: string, key: string): string | undefined {
  return key.startsWith(start) ? key.slice(start.length) : undefined
}
