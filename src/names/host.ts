import { parseName } from './name.js'
import type { Name } from './protocol.js'

/** Where a Host header points. */
export interface Place {
  /** The root host that it names or lies below; undefined: a host that is none of ours. */
  readonly root: string | undefined
  /** Place of `root` in the operator's list. */
  readonly rootIndex: number
  /** With its colon, as the client wrote it; '' where there is none. */
  readonly port: string
  /** The leftmost label in front of the root host, lower case; undefined on the root host itself. */
  readonly label: string | undefined
  /** What the label asks for. `malformed`: it stands where a name should, but is none that could exist. */
  readonly name: Name | 'malformed' | undefined
  /** The host is an IP address. */
  readonly isAddress: boolean
}

/** Longer labels without an undername are no names: so the 52 characters of a sandbox label never are. */
const bareNameMax = 51

/** Hosts seen lately: most requests of a thread name a few hundred. About 300 bytes each. */
const keptMax = 1024

const addressShape = /^(\[.*\]|\d{1,3}(\.\d{1,3}){3})$/
const portShape = /^:\d{1,5}$/

/** Reads Host headers against the root hosts of this gateway. */
export class Hosts {
  /** Longest first. */
  readonly #roots: readonly { readonly host: string; readonly index: number }[]
  readonly #kept = new Map<string, Place>()

  /** `roots`: lower case, without ports. Several may overlap: the longest that fits counts. */
  constructor(roots: readonly string[]) {
    this.#roots = roots
      .map((host, index) => ({ host, index }))
      .sort((one, other) => other.host.length - one.host.length)
  }

  /** What `host` (the header's value, any case) points at. Costs a look into a map from the second time on. */
  place(host: string): Place {
    const kept = this.#kept.get(host)
    if (kept !== undefined) return kept
    const place = this.#read(host)
    if (this.#kept.size === keptMax) {
      const [oldest] = this.#kept.keys()
      if (oldest !== undefined) this.#kept.delete(oldest)
    }
    this.#kept.set(host, place)
    return place
  }

  #read(text: string): Place {
    const colon = text.lastIndexOf(':')
    // An address in brackets has colons of its own.
    const at = colon > text.lastIndexOf(']') ? colon : text.length
    const port = portShape.test(text.slice(at)) ? text.slice(at) : ''
    const host = text.slice(0, at).toLowerCase().replace(/\.$/, '')
    const isAddress = addressShape.test(host)
    const found = this.#roots.find((root) => host === root.host || host.endsWith(`.${root.host}`))
    const root = { root: found?.host, rootIndex: found?.index ?? 0, port, isAddress }
    if (found === undefined || host === found.host) return { ...root, label: undefined, name: undefined }
    // Of several labels only the leftmost counts.
    const [label = ''] = host.slice(0, -found.host.length - 1).split('.', 1)
    // `www` is another way to write the root host.
    if (label === 'www') return { ...root, label, name: undefined }
    const isName = label.length <= bareNameMax || label.includes('_')
    return { ...root, label, name: isName ? (parseName(label) ?? 'malformed') : undefined }
  }
}
