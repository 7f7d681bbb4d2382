import { statSync } from 'node:fs'
import { readSmall } from '../store/folder.js'
import { type CheckedPair, checkPair, wrongTime } from './check.js'
import { type PairPlace, pairsIn } from './places.js'

/** Where the certificates of this program lie. The first pair found is the default one. */
export interface CertificateSources {
  /** One pair that the operator named. */
  readonly pair?: PairPlace
  /** A folder of the operator's. */
  readonly folder?: string
  /** Those that this program got by ACME. */
  readonly issued?: string
}

export interface PlacedPair extends CheckedPair, PairPlace {}

/** What could not be used, and why. The certificate of before stays in use where there is one. */
export interface RefusedPair {
  readonly file: string
  readonly why: string
}

export interface Reading {
  /** Something else is in use than before. */
  readonly isChanged: boolean
  /** What was not refused for the same reason by the call before. */
  readonly refused: readonly RefusedPair[]
}

/** Bytes of a file at most. */
const fileMaxBytes = 262_144

/**
 * The certificates in use. `read` looks at their files again. A new pair replaces the old one of its place only after it was
 * checked, so that files which are being swapped, or are wrong, change nothing.
 */
export class CurrentCertificates {
  #pairs = new Map<string, PlacedPair>()
  #refused = new Map<string, string>()
  /** The files as they were when they were read last; they are read again only after they changed. */
  #stamps = new Map<string, string>()

  constructor(private readonly sources: CertificateSources) {}

  /** The default one first. */
  get pairs(): readonly PlacedPair[] {
    return [...this.#pairs.values()]
  }

  /** What was refused by the last reading. */
  get refused(): readonly RefusedPair[] {
    return [...this.#refused].map(([file, why]) => ({ file, why }))
  }

  /** Reads what changed. Expired pairs are taken where there was none before: a late certificate is better than no listener. */
  read(nowMs: number): Reading {
    const refused = new Map<string, string>()
    const places = this.#places(refused)
    const next = new Map<string, PlacedPair>()
    let isChanged = false
    for (const place of places) {
      const { certFile } = place
      const old = this.#pairs.get(certFile)
      const taken = this.#readOne(place, old, nowMs)
      if ('wrong' in taken) refused.set(certFile, taken.wrong)
      const pair = 'wrong' in taken ? old : taken
      if (pair !== undefined) next.set(certFile, pair)
      if (pair !== old) isChanged = true
    }
    const fresh = [...refused].filter(([file, why]) => this.#refused.get(file) !== why)
    this.#refused = refused
    // Where nothing is left that can be used, what is in use stays.
    if (next.size > 0 || this.#pairs.size === 0) {
      isChanged ||= next.size !== this.#pairs.size
      this.#pairs = next
    }
    return { isChanged, refused: fresh.map(([file, why]) => ({ file, why })) }
  }

  /** A folder that cannot be listed keeps the pairs that came from it. */
  #places(refused: Map<string, string>): PairPlace[] {
    const { pair, folder, issued } = this.sources
    const listed = [issued, folder].flatMap((one) => {
      if (one === undefined) return []
      try {
        return pairsIn(one)
      } catch (error) {
        if (one !== issued || codeOf(error) !== 'ENOENT') refused.set(one, reasonOf(error))
        return this.pairs.filter(({ certFile }) => certFile.startsWith(`${one}/`))
      }
    })
    return pair === undefined ? listed : [pair, ...listed]
  }

  #readOne(place: PairPlace, old: PlacedPair | undefined, nowMs: number): PlacedPair | { wrong: string } {
    const { certFile, keyFile } = place
    try {
      const stamp = `${stampOf(certFile)} ${stampOf(keyFile)}`
      const wrong = this.#refused.get(certFile)
      if (this.#stamps.get(certFile) === stamp) {
        if (wrong !== undefined) return { wrong }
        if (old !== undefined) return old
      }
      const checked = checkPair(readSmall(certFile, fileMaxBytes), readSmall(keyFile, fileMaxBytes))
      const late = old === undefined || 'wrong' in checked ? undefined : wrongTime(checked, nowMs)
      // One that is not valid yet is looked at again, although its files do not change.
      if (late !== undefined) return { wrong: late }
      this.#stamps.set(certFile, stamp)
      return 'wrong' in checked ? checked : { ...checked, ...place }
    } catch (error) {
      return { wrong: reasonOf(error) }
    }
  }
}

function stampOf(path: string): string {
  const { ino, size, mtimeMs } = statSync(path)
  return `${ino}:${size}:${mtimeMs}`
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this user may not read it',
  EFBIG: 'it is too large',
  EISDIR: 'it is a folder',
}

function reasonOf(error: unknown): string {
  const { path, message } = error as NodeJS.ErrnoException
  const reason = reasons[codeOf(error) ?? ''] ?? message
  return path === undefined ? reason : `${path}: ${reason}`
}
