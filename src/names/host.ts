import { parseName } from './name.js'
import type { Name } from './names-port.js'

/** Where a Host header points. */
export interface HostPlace {
  /** The root host that it names or lies below; undefined: a host that is none of ours. */
  readonly root: string | undefined
  /** Place of `root` in the operator's list. */
  readonly rootIndex: number
  /** With its colon, as the client wrote it; '' where there is none. */
  readonly port: string
  /** The leftmost label in front of the root host, lower case; undefined on the root host itself. */
  readonly label: string | undefined
  /** The name of the label. `malformed`: the label is in the place of a name but cannot be one. */
  readonly name: Name | 'malformed' | undefined
}

/** Longer labels without an undername are no names: so the 52 characters of a sandbox label never are. */
const bareNameMax = 51

/**
 * Hosts of a generation: most requests of a thread name a few hundred. A host name has 253 characters at most (RFC
 * 1035 section 2.3.4), its port 6; longer ones are not cached. So the two generations take a few MiB at most,
 * whatever clients send.
 */
const keptMax = 4096
const keptLengthMax = 260

const portShape = /^:\d{1,5}$/

/** Reads Host headers against the root hosts of this gateway. */
export class Hosts {
  /** Longest first. */
  readonly #roots: readonly { readonly host: string; readonly behind: string; readonly index: number }[]
  /**
   * New entries go to the young generation; when it is full, it becomes the old one and the old one is dropped.
   * Entries are never removed singly, which would take longer.
   */
  #young = new Map<string, HostPlace>()
  #old = new Map<string, HostPlace>()

  /** `roots`: lower case, without ports. Several may overlap: the longest that fits counts. */
  constructor(roots: readonly string[]) {
    this.#roots = roots
      .map((host, index) => ({ host, behind: `.${host}`, index }))
      .sort((one, other) => other.host.length - one.host.length)
  }

  /** What `host` (the header's value, any case) points at. From the second time on it is one look-up in a map. */
  place(host: string): HostPlace {
    const kept = this.#young.get(host)
    if (kept !== undefined) return kept
    const place = this.#old.get(host) ?? this.#read(host)
    if (host.length > keptLengthMax) return place
    if (this.#young.size === keptMax) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(host, place)
    return place
  }

  #read(text: string): HostPlace {
    const colon = text.lastIndexOf(':')
    // An address in brackets has colons of its own.
    const at = colon > text.lastIndexOf(']') ? colon : text.length
    const port = at < text.length && portShape.test(text.slice(at)) ? text.slice(at) : ''
    // A dot at the end means the same host (RFC 1034 section 3.1).
    const host = text.slice(0, text[at - 1] === '.' ? at - 1 : at).toLowerCase()
    const found = this.#roots.find((root) => host === root.host || host.endsWith(root.behind))
    if (found === undefined) {
      return { root: undefined, rootIndex: 0, port, label: undefined, name: undefined }
    }
    const { host: root, index: rootIndex } = found
    // Of several labels only the leftmost counts.
    const label = host === root ? undefined : host.slice(0, host.indexOf('.'))
    return { root, rootIndex, port, label, name: nameOf(label) }
  }
}

/** `www` is another way to write the root host. */
function nameOf(label: string | undefined): HostPlace['name'] {
  if (label === undefined || label === 'www') return undefined
  return label.length <= bareNameMax || label.includes('_') ? (parseName(label) ?? 'malformed') : undefined
}
