import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { Dice } from '../kit/dice.js'
import { workFolder } from '../kit/folders.js'
import { truthBytes, truthFrom } from './truth.js'

/** A content: a window of the truth under an id. */
export interface Content {
  readonly id: Id
  readonly sizeBytes: number
  readonly truthStart: number
  /** SHA-256. */
  readonly digest: Uint8Array
}

/** Contents on disk, each as a file named by its id, and all of them in a few large files. */
export interface Corpus {
  readonly name: string
  readonly filesFolder: string
  readonly packs: readonly string[]
  /** File of packs and places by id: lines of id, pack, start, size. */
  readonly placesPath: string
  readonly contents: readonly Content[]
}

/** Sizes of small things on the network. */
export const smallSizes = {
  law: 'lognormal',
  medianBytes: 6 * 2 ** 10,
  maxBytes: 2 ** 18,
} as const satisfies SizeLaw

export type SizeLaw =
  | { readonly law: 'lognormal'; readonly medianBytes: number; readonly maxBytes: number }
  | { readonly law: 'listed'; readonly sizesBytes: readonly number[] }

/** How many, and how large. */
export interface CorpusPlan {
  readonly name: string
  readonly count: number
  readonly sizes: SizeLaw
  /** Only single files, no packs. */
  readonly unpacked?: true
}

/** Bytes of all contents together. */
export function bytesOf({ contents }: Pick<Corpus, 'contents'>): number {
  return contents.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
}

/** Sizes of small things on the network: the mean is 2.3 times the median, one in 500 reaches the upper bound. */
const sigma = 1.3
/** What one ArrayBuffer over a mapped file covers. */
const packBytes = 2 ** 30

/** The size of the content at a place of a corpus. */
export function sizeOf(sizes: SizeLaw, dice: Dice, at: number): number {
  if (sizes.law === 'listed') return sizes.sizesBytes[at % sizes.sizesBytes.length] ?? 0
  const drawn = sizes.medianBytes * Math.exp(sigma * dice.normal())
  return Math.max(16, Math.min(sizes.maxBytes, Math.round(drawn)))
}

/** Writes contents into packs, none across the bounds of two. */
class Packer {
  readonly paths: string[] = []
  #file = -1
  #left = 0
  #at = 0

  constructor(
    private readonly folder: string,
    private readonly isIdle: boolean,
  ) {}

  /** Room for one content; its place. */
  begin(sizeBytes: number): { pack: number; start: number } {
    if (this.isIdle) return { pack: 0, start: 0 }
    if (sizeBytes > this.#left) {
      this.close()
      const path = join(this.folder, `pack-${this.paths.length}`)
      this.paths.push(path)
      this.#file = openSync(path, 'w')
      this.#left = Math.max(packBytes, sizeBytes)
      this.#at = 0
    }
    const place = { pack: this.paths.length - 1, start: this.#at }
    this.#left -= sizeBytes
    this.#at += sizeBytes
    return place
  }

  write(piece: Uint8Array): void {
    if (this.#file >= 0) writeSync(this.#file, piece)
  }

  close(): void {
    if (this.#file >= 0) closeSync(this.#file)
    this.#file = -1
  }
}

function make({ name, count, sizes, unpacked }: CorpusPlan, folder: string): void {
  const files = join(folder, 'files')
  mkdirSync(files, { recursive: true })
  const packer = new Packer(folder, unpacked === true)
  const dice = new Dice(count)
  const lines: string[] = []
  const places: string[] = []
  for (let at = 0; at < count; at += 1) {
    const seed = createHash('sha256').update(`${name} ${at}`).digest()
    const id = idOfBytes(seed)
    const sizeBytes = sizeOf(sizes, dice, at)
    const truthStart = seed.readUInt32LE(0) % truthBytes
    const { pack, start } = packer.begin(sizeBytes)
    const hash = createHash('sha256')
    const file = openSync(join(files, id), 'w', 0o600)
    for (const piece of truthFrom(truthStart, sizeBytes)) {
      hash.update(piece)
      writeSync(file, piece)
      packer.write(piece)
    }
    closeSync(file)
    lines.push(`${id} ${sizeBytes} ${truthStart} ${hash.digest('base64url')}`)
    places.push(`${id} ${pack} ${start} ${sizeBytes}`)
  }
  packer.close()
  writeFileSync(join(folder, 'places'), places.join('\n'))
  writeFileSync(join(folder, 'packs'), String(packer.paths.length))
  writeFileSync(join(folder, 'contents'), lines.join('\n'))
}

/** The corpus of this plan: made on first need, read back afterwards. */
export function corpusOf(plan: CorpusPlan): Corpus {
  const version = createHash('sha256').update(JSON.stringify(plan)).digest('hex').slice(0, 8)
  const folder = join(workFolder, `corpus-${plan.name}-${version}`)
  if (!existsSync(folder)) {
    const draft = `${folder}.draft`
    rmSync(draft, { recursive: true, force: true })
    make(plan, draft)
    renameSync(draft, folder)
  }
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8')
  const contents = read('contents')
    .split('\n')
    .map((line): Content => {
      const [id = '', size, start, digest = ''] = line.split(' ')
      const bytes = Buffer.from(digest, 'base64url')
      return { id: id as Id, sizeBytes: Number(size), truthStart: Number(start), digest: bytes }
    })
  return {
    name: plan.name,
    filesFolder: join(folder, 'files'),
    packs: Array.from({ length: Number(read('packs')) }, (_, at) => join(folder, `pack-${at}`)),
    placesPath: join(folder, 'places'),
    contents,
  }
}
