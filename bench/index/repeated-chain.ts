import type { IndexRequest } from '../../src/catalog/index-protocol.js'
import { wordRole } from '../../src/catalog/pack.js'
import { idOfBytes } from '../../src/format/id.js'
import { VarReader } from '../../src/format/varbytes.js'
import { Dice } from '../kit/dice.js'
import { Chain, type ChainBlock, driveTag, fileNameTag, messagesOf } from './chain.js'

/** Blocks that are made in full: 100,000 items. */
const templateBlocks = 50
/** Owners of a repeated chain. */
export const ownerCount = 20_000
const idSize = 32

/** What becomes of the value of a word, each time that its block is used again. */
type Change = 'hex' | 'decimal' | 'base64url' | 'folder'
/** Tags whose values no other item has, or few; `folder`: one of sixteen for each in the template. */
const changes: Readonly<Record<string, Change>> = {
  'File-Id': 'hex',
  'Folder-Id': 'hex',
  'Unix-Time': 'decimal',
  'Cipher-IV': 'base64url',
  [fileNameTag]: 'decimal',
  'Parent-Folder-Id': 'folder',
  [driveTag]: 'folder',
}
/** Of `Unix-Time` and of file names these characters stay. */
const kept: Readonly<Record<string, number>> = { 'Unix-Time': 2, [fileNameTag]: 'report-'.length }
const hex = Buffer.from('0123456789abcdef')
const base64url = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_')

/** Where a packed message has what changes. */
interface Places {
  /** Where rows begin: with their ids, in the order of these. */
  readonly rows: readonly number[]
  /** Anchors of 32 bytes: random. */
  readonly anchors: readonly number[]
  readonly words: readonly { readonly change: Change; readonly start: number; readonly end: number }[]
  /** The id of the bundle, where rows have one. */
  readonly bundles: readonly number[]
}

/**
 * A long chain at a small part of what making each row costs: blocks of the made-up chain again and again, with new ids, and new
 * values of the tags that differ from item to item. Owners (20,000), recipients, applications and types stay as they are.
 */
export function* repeatedBlocks(items: number, bundlesPerBlock: number): Generator<MadeBlock> {
  const chain = new Chain({ items: ownerCount * 50, itemsPerBundle: 1000, bundlesPerBlock, seed: 1 })
  const templates = []
  for (const block of chain.blocks()) {
    templates.push(new Template(block))
    if (templates.length === templateBlocks) break
  }
  const dice = new Dice(7)
  let previous = dice.bytes(48).toString('base64url')
  for (let [at, made] = [0, 0]; made < items; at += 1) {
    const template = templates[at % templates.length]
    if (template === undefined) return
    const id = dice.bytes(48).toString('base64url')
    yield template.changed(dice, {
      height: 1000 + at,
      id,
      previous,
      round: Math.floor(at / templates.length),
    })
    made += template.items
    previous = id
  }
}

/** A block as its messages to the keeper; an item and a bundle of it. */
export interface MadeBlock {
  readonly messages: readonly IndexRequest[]
  readonly id: Uint8Array
  readonly bundle: Uint8Array
}

class Template {
  readonly #messages: readonly {
    readonly message: IndexRequest
    readonly bytes: Uint8Array
    readonly places: Places
  }[]
  readonly items: number

  constructor(block: ChainBlock) {
    this.items = block.bundles.reduce((sum, { items }) => sum + items.length, 0)
    this.#messages = messagesOf(block).map((message) => {
      const bytes = packedOf(message)
      return { message, bytes, places: placesOf(bytes, message.kind === 'index-items') }
    })
  }

  changed(dice: Dice, next: NextBlock): MadeBlock {
    let roots = new Map<string, Uint8Array>()
    let some: { id: Uint8Array; bundle: Uint8Array } | undefined
    const messages = this.#messages.map(({ message, bytes: old, places }): IndexRequest => {
      const bytes = changedBytes(old, places, dice, next.round)
      const id = (of: Uint8Array, at: number): Uint8Array => of.subarray(at, at + idSize)
      if (message.kind === 'index-block') {
        roots = new Map(places.rows.map((at) => [idOfBytes(id(old, at)), id(bytes, at)]))
        const { round: _, ...about } = next
        const timestamp = 1_600_000_000 + next.height * 120
        return { ...message, block: { ...message.block, ...about, timestamp }, transactions: bytes }
      }
      const bundle = message.kind === 'index-items' ? roots.get(message.rootId) : undefined
      if (message.kind !== 'index-items' || bundle === undefined)
        throw new Error('a bundle without its transaction')
      for (const at of places.bundles) bytes.set(bundle, at)
      some ??= { id: id(bytes, places.rows[0] ?? 0), bundle }
      return { ...message, rootId: idOfBytes(bundle), items: bytes }
    })
    if (some === undefined) throw new Error('a block without items')
    return { messages, ...some }
  }
}

interface NextBlock {
  readonly height: number
  readonly id: string
  readonly previous: string
  /** How often its template was used before. */
  readonly round: number
}

function changedBytes(old: Uint8Array, places: Places, dice: Dice, round: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(old.length)
  bytes.set(old)
  newIds(bytes, places.rows, dice)
  for (const at of places.anchors) random(bytes, at, at + idSize, dice)
  for (const { change, start, end } of places.words) newValue(bytes, change, [start, end], { dice, round })
  return bytes
}

function packedOf(message: IndexRequest): Uint8Array {
  if (message.kind === 'index-block') return message.transactions
  if (message.kind === 'index-items') return message.items
  throw new Error('a block has other messages')
}

/** Reads a packed message (pack.ts has its layout). */
function placesOf(bytes: Uint8Array, areItems: boolean): Places {
  const reader = new VarReader(bytes)
  const wordsEnd = 4 + reader.u32()
  const places = { rows: [] as number[], anchors: [] as number[], bundles: [] as number[] }
  const words: { change: Change; start: number; end: number }[] = []
  while (reader.at < wordsEnd) {
    const role = reader.u8()
    const first = reader.block()
    if (role === wordRole.bundle) places.bundles.push(reader.at - idSize)
    if (role === wordRole.owner) reader.block()
    if (role !== wordRole.tag) continue
    const name = first.toString('latin1')
    const size = reader.block().length
    const change = changes[name]
    if (change !== undefined)
      words.push({ change, start: reader.at - size + (kept[name] ?? 0), end: reader.at })
  }
  while (reader.more) {
    places.rows.push(reader.at)
    reader.pass(idSize)
    for (let left = 3; left > 0; left -= 1) reader.uint()
    if (reader.block().length === idSize) places.anchors.push(reader.at - idSize)
    for (let left = reader.uint(); left > 0; left -= 1) reader.uint()
    reader.block()
    for (let left = areItems ? 5 : 3; left > 0; left -= 1) reader.uint()
    if (areItems) continue
    for (let left = 3; left > 0; left -= 1) reader.block()
    reader.uint()
  }
  return { ...places, words }
}

/** New ids in the same order as the old ones. */
function newIds(bytes: Buffer, rows: readonly number[], dice: Dice): void {
  const firsts = Float64Array.from(rows, () => dice.word() * 0x10000 + (dice.word() & 0xffff)).sort()
  for (const [row, at] of rows.entries()) {
    bytes.writeUIntBE(firsts[row] as number, at, 6)
    random(bytes, at + 6, at + idSize, dice)
  }
}

function random(bytes: Buffer, start: number, end: number, dice: Dice): void {
  let word = 0
  for (let at = start; at < end; at += 1) {
    word = (at - start) % 4 === 0 ? dice.word() : word >>> 8
    bytes[at] = word
  }
}

/** Another value of the same shape; `round`: how often the block was used before. */
function newValue(
  bytes: Buffer,
  change: Change,
  [start, end]: readonly [number, number],
  { dice, round }: { dice: Dice; round: number },
): void {
  if (change === 'folder') {
    bytes[start] = hex[
      (Number.parseInt(String.fromCharCode(bytes[start] as number), 16) + round) % 16
    ] as number
    return
  }
  let word = 0
  for (let at = start; at < end; at += 1) {
    word = (at - start) % 5 === 0 ? dice.word() : word >>> 6
    if (bytes[at] === 0x2d && change !== 'base64url') continue
    if (change === 'hex') bytes[at] = hex[word & 15] as number
    else if (change === 'base64url') bytes[at] = base64url[word & 63] as number
    else bytes[at] = 0x30 + ((word & 63) % 10)
  }
}
