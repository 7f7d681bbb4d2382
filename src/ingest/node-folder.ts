import { readdirSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Block, ByteFlow } from '../chain/chain.js'
import { readBlock } from '../chain/node-answers.js'
import { readTransaction } from '../chain/read-transaction.js'
import { type Id, parseId } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Transaction } from '../format/transaction.js'
import { DataRootHasher } from '../proof/data-root.js'
import { isMissing } from '../store/blobs.js'
import { openRegular, readRegular } from '../store/regular-file.js'
import type { RootStream } from './bundle-bytes.js'
import type { SupplyChain } from './supply.js'

/** A block is 2 MiB of JSON at most, a transaction with its data in it 16 MiB. */
const jsonBytesMax = 32 * 2 ** 20

/**
 * A folder with the answers of a node, as files:
 *
 *     blocks/<name>.json                    `GET /block/...`; the name is the block's hash or its height
 *     blocks-by-height.json                 {"<height>": "<hash>"}; without it every block's file is read for its height
 *     transactions/<id>.json, genesis/<id>.json   `GET /tx/<id>`
 *     data/<id>, bundles/<id>               the whole data of a transaction, as bytes
 *
 * Its contents are checked like the answers of a node.
 */
export class NodeFolder implements SupplyChain {
  #heights = new Map<number, string>()

  constructor(readonly path: string) {}

  /** Finds the blocks: once, before any other call. Heights of all of them, in order. Rejects where `signal` fires. */
  async blocks(signal?: AbortSignal): Promise<number[] | Refusal> {
    const listed = await this.#listed(signal)
    if (isRefusal(listed)) return listed
    this.#heights = listed
    return [...listed.keys()].sort((one, other) => one - other)
  }

  /** Transactions whose data is in the folder. */
  dataIds(): Id[] {
    const names = ['data', 'bundles'].flatMap((name) => namesIn(join(this.path, name)))
    return [...new Set(names.map(parseId))].filter((id) => id !== undefined)
  }

  async blockByHeight(height: number): Promise<Block | Refusal> {
    const file = this.#heights.get(height)
    const text = file === undefined ? undefined : await textIn(join(this.path, 'blocks', file))
    if (text === undefined || isRefusal(text)) return text ?? unknown(`block ${height} is not in the folder`)
    const block = readBlock(text)
    if (block === undefined || block.height !== height) {
      return refuse('malformed', 'upstream', `blocks/${file} is not block ${height}`)
    }
    return block
  }

  async transaction(id: Id): Promise<Transaction | Refusal> {
    for (const folder of ['transactions', 'genesis']) {
      const text = await textIn(join(this.path, folder, `${id}.json`))
      if (text !== undefined) return isRefusal(text) ? text : readTransaction(text, id, false, this.path)
    }
    return unknown(`transaction ${id} is not in the folder`)
  }

  async transactionData(id: Id, sizeBytes: number): Promise<ByteFlow | Refusal> {
    const file = await this.#dataFile(id)
    if (file === undefined) return unknown(`the data of ${id} is not in the folder`)
    if (file.sizeBytes !== sizeBytes) return refuse('forged', 'upstream', `${file.path} has another size`)
    return { node: this.path, bytes: copies(file.path, sizeBytes) }
  }

  /**
   * The data of a transaction; where a data root is given, the whole file is checked against it before a byte is
   * returned. Rejects where `signal` fires meanwhile.
   */
  async openData(
    id: Id,
    dataRoot: Uint8Array | undefined,
    signal?: AbortSignal,
  ): Promise<RootStream | Refusal> {
    const file = await this.#dataFile(id)
    if (file === undefined) return unknown(`the data of ${id} is not in the folder`)
    const stream = { sizeBytes: file.sizeBytes, bytes: pieces(file.path, file.sizeBytes) }
    if (dataRoot === undefined) return stream
    const hasher = new DataRootHasher(file.sizeBytes)
    for await (const piece of pieces(file.path, file.sizeBytes)) {
      signal?.throwIfAborted()
      hasher.update(piece)
    }
    const tree = hasher.finish()
    if (isRefusal(tree)) return tree
    const same = Buffer.compare(tree.root, dataRoot) === 0
    return same ? stream : refuse('forged', 'upstream', `${file.path} is not the data of ${id}`)
  }

  async #dataFile(id: Id): Promise<{ path: string; sizeBytes: number } | undefined> {
    for (const folder of ['data', 'bundles']) {
      const path = join(this.path, folder, id)
      try {
        const found = await stat(path)
        if (found.isFile()) return { path, sizeBytes: found.size }
      } catch (error) {
        if (!isMissing(error)) throw error
      }
    }
    return undefined
  }

  async #listed(signal: AbortSignal | undefined): Promise<Map<number, string> | Refusal> {
    const heights = new Map<number, string>()
    const text = await textIn(join(this.path, 'blocks-by-height.json'))
    if (isRefusal(text)) return text
    if (text !== undefined) {
      for (const [height, name] of Object.entries(objectIn(text))) {
        if (/^\d{1,10}$/.test(height) && typeof name === 'string' && /^[\w-]{1,64}$/.test(name)) {
          heights.set(Number(height), `${name}.json`)
        }
      }
      return heights
    }
    for (const name of namesIn(join(this.path, 'blocks'))) {
      if (!/^[\w-]{1,64}\.json$/.test(name)) continue
      signal?.throwIfAborted()
      const [, number] = /^(\d{1,10})\.json$/.exec(name) ?? []
      const content = number === undefined ? await textIn(join(this.path, 'blocks', name)) : undefined
      const height = number ?? (typeof content === 'string' ? readBlock(content)?.height : undefined)
      if (height !== undefined) heights.set(Number(height), name)
    }
    return heights
  }
}

function unknown(message: string): Refusal {
  return refuse('unknown', 'upstream', message)
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

const pieceBytes = 2 ** 20

/** Pieces of a file of this size, or of more where it has grown: each valid until the next one is requested. */
async function* pieces(path: string, sizeBytes: number): AsyncGenerator<Uint8Array> {
  const file = await openRegular(path)
  // It was one a moment ago.
  if (file === undefined) throw new Error(`${path} is not a regular file any more`)
  try {
    const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, sizeBytes + 1))
    for (;;) {
      const { bytesRead } = await file.read(piece)
      if (bytesRead > 0) yield piece.subarray(0, bytesRead)
      // Room was left: that was the end.
      if (bytesRead < piece.length) return
    }
  } finally {
    await file.close()
  }
}

/** The same, each valid for as long as it is referenced. */
async function* copies(path: string, sizeBytes: number): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces(path, sizeBytes)) yield Buffer.from(piece)
}

async function textIn(path: string): Promise<string | Refusal | undefined> {
  try {
    const bytes = await readRegular(path, jsonBytesMax)
    if (bytes === undefined) return refuse('malformed', 'upstream', `${path} is not a regular file`)
    if (bytes.length > jsonBytesMax)
      return refuse('too-large', 'upstream', `${path} has more than ${jsonBytesMax} bytes`)
    return bytes.toString()
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
