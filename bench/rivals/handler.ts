import { readFileSync } from 'node:fs'
import { mappedBy, openMapped } from '../../native/mapped/mapped.js'

/** What a handler under a server layer serves. Plain data: it goes to a program of its own as a file. */
export interface Served {
  readonly packs: readonly string[]
  /** Lines of id, pack, start, size. */
  readonly placesPath: string
  /** Header lines of an answer of the gateway, cut where the id of its content stands. */
  readonly block: readonly string[]
  /** By path without the first slash: id of the content. */
  readonly pages: Readonly<Record<string, string>>
  /** By label of a host name: what stands before the path. */
  readonly names: Readonly<Record<string, string>>
}

/** An answer that a layer has to send. */
export interface Answer {
  readonly status: 200 | 206 | 304 | 404
  /** Header lines joined by CRLF: without Date and Content-Length, which are the layer's. */
  readonly block: string
  readonly body: Uint8Array
}

interface Place {
  readonly id: string
  readonly pack: number
  readonly start: number
  readonly sizeBytes: number
}

const nothing = new Uint8Array(0)
const unknown: Answer = {
  status: 404,
  block: 'Content-Type: text/plain; charset=utf-8',
  body: Buffer.from('Not Found'),
}

/**
 * The same small gateway for every server layer: contents in mapped files, found by id, by manifest and path, or by name,
 * with the header lines that the whole program sends. Its cost is the same under every layer, so that the layers can be
 * compared.
 */
export class Handler {
  readonly #places = new Map<string, Place>()
  readonly #packs: Uint8Array[]
  readonly #pages: Map<string, string>
  readonly #names: Map<string, string>
  readonly #block: readonly string[]

  constructor(served: Served) {
    for (const line of readFileSync(served.placesPath, 'utf8').split('\n')) {
      const [id = '', pack, start, size] = line.split(' ')
      this.#places.set(id, { id, pack: Number(pack), start: Number(start), sizeBytes: Number(size) })
    }
    this.#packs = served.packs.map((path) => {
      const file = openMapped(path)
      // Without the addon all views share one buffer, so that the layers cannot be compared.
      if (file === undefined || mappedBy !== 'addon') throw new Error(`${path} cannot be mapped`)
      return file.view(0, file.sizeBytes)
    })
    this.#pages = new Map(Object.entries(served.pages))
    this.#names = new Map(Object.entries(served.names))
    this.#block = served.block
  }

  answer(path: string, host: string, range: string | undefined, ifNoneMatch: string | undefined): Answer {
    const place = this.#find(path, host)
    if (place === undefined) return unknown
    const { id, pack, start, sizeBytes } = place
    const block = `${this.#block.join(id)}\r\nETag: "${id}"`
    if (ifNoneMatch === `"${id}"`) return { status: 304, block, body: nothing }
    const bytes = this.#packs[pack] ?? nothing
    const wanted = range === undefined ? null : /^bytes=(\d+)-(\d+)$/.exec(range)
    if (wanted === null) return { status: 200, block, body: bytes.subarray(start, start + sizeBytes) }
    const [from, to] = [Number(wanted[1]), Number(wanted[2])]
    const body = bytes.subarray(start + from, start + to + 1)
    return { status: 206, block: `${block}\r\nContent-Range: bytes ${from}-${to}/${sizeBytes}`, body }
  }

  #find(path: string, host: string): Place | undefined {
    const direct = this.#places.get(path.slice(1))
    if (direct !== undefined) return direct
    const dot = host.indexOf('.localhost')
    const key = dot < 0 ? path.slice(1) : `${this.#names.get(host.slice(0, dot))}${path}`
    const id = this.#pages.get(key)
    return id === undefined ? undefined : this.#places.get(id)
  }
}
