import { createHash, hash } from 'node:crypto'
import { type Bencodable, encodeBencode } from './bencode.js'
import { merkleRoot } from './tree.js'

/**
 * Hybrid torrents (BEP 52, with BEP 47 pad files) of one flat folder. Every byte of the form is fixed, so that the same files
 * always give the same two infohashes.
 */

/** Bytes of a leaf of the hash tree, and of a block, which is the size of one request. */
export const blockBytes = 16 * 1024

/** Torrents made here are cut into pieces of this size. */
export const defaultPieceBytes = 256 * 1024

/** What one pass over a file found. */
export interface HashedFile {
  readonly name: string
  readonly sizeBytes: number
  /** SHA-256 of the whole file, 32 bytes. */
  readonly sha256: Uint8Array
  /** 32 bytes for each piece: roots of the leaves below it. For a file of one piece, the root of its own small tree. */
  readonly layer: Uint8Array
  /** 20 bytes for each piece: SHA-1 of its bytes, the last one padded with zeros. */
  readonly sha1s: Uint8Array
}

export interface TorrentFile {
  /** A plain name: letters, digits, dot, dash, underscore. */
  readonly name: string
  readonly sizeBytes: number
  /** Each file begins at a piece boundary, so pieces have the same numbers in both versions. An empty file has no piece. */
  readonly firstPiece: number
  readonly pieces: number
  /** Hash of each piece, 32 bytes each, in order. */
  readonly layer: Uint8Array
}

export interface Torrent {
  readonly name: string
  readonly pieceBytes: number
  readonly pieces: number
  readonly files: readonly TorrentFile[]
  /** The bencoded `info`, whose digests are the infohashes. */
  readonly info: Buffer
  /** 20 bytes, SHA-1 of `info`. */
  readonly infohashV1: Buffer
  /** 32 bytes, SHA-256 of `info`. */
  readonly infohashV2: Buffer
  /**
   * 20 bytes: the infohash by programs that write the info anew without its empty keys, and hash that. aria2 is one. It
   * requests hybrid torrents by this infohash only.
   */
  readonly infohashLossy: Buffer
}

/** A file of a torrent before anything is hashed: name, size, and the hash of its tree. */
export interface PlannedFile {
  readonly name: string
  readonly sizeBytes: number
  readonly layer: Uint8Array
}

const fileName = /^[A-Za-z0-9._-]{1,128}$/

/** Whether a name may be that of a torrent's file: one path segment that does not lead to the folder above. */
export function isPlainFileName(name: string): boolean {
  return fileName.test(name) && name !== '.' && !name.includes('..')
}

/** Order of bytes, which is that of characters: names are ASCII. */
function byName(one: { readonly name: string }, other: { readonly name: string }): number {
  return one.name < other.name ? -1 : one.name > other.name ? 1 : 0
}

/**
 * The name of a torrent made here, 16 hex digits: the beginning of SHA-256 over lines of name, NUL, decimal size, NUL, SHA-256 in
 * hex, in order of names.
 */
export function torrentName(
  files: readonly { readonly name: string; readonly sizeBytes: number; readonly sha256Hex: string }[],
): string {
  const digest = createHash('sha256')
  for (const { name, sizeBytes, sha256Hex } of [...files].sort(byName)) {
    digest.update(`${name}\0${sizeBytes}\0${sha256Hex}\n`)
  }
  return digest.digest('hex').slice(0, 16)
}

/** The torrent of hashed files, in any order. Throws where a name is not a plain one or is there twice: a bug. */
export function hybridTorrent(files: readonly HashedFile[], pieceBytes = defaultPieceBytes): Torrent {
  const listed = files.map((file) => ({ ...file, sha256Hex: Buffer.from(file.sha256).toString('hex') }))
  const sorted = [...files].sort(byName)
  const sha1s = Buffer.concat(sorted.map((file) => file.sha1s))
  return composeTorrent(torrentName(listed), pieceBytes, sorted, sha1s)
}

/**
 * Puts a torrent together: `files` in order of names, `sha1s` 20 bytes for each piece. Throws on bad names or counts: whoever
 * reads foreign torrents checks first.
 */
export function composeTorrent(
  name: string,
  pieceBytes: number,
  files: readonly PlannedFile[],
  sha1s: Uint8Array,
): Torrent {
  const placed: TorrentFile[] = []
  let firstPiece = 0
  for (const { name: own, sizeBytes, layer } of files) {
    const before = placed.at(-1)
    if (!isPlainFileName(own) || (before !== undefined && before.name >= own)) {
      throw new Error(`no name for the next file of a torrent: ${own}`)
    }
    const pieces = Math.ceil(sizeBytes / pieceBytes)
    if (layer.length !== pieces * 32) throw new Error(`${own}: ${layer.length} bytes of hashes`)
    placed.push({ name: own, sizeBytes, firstPiece, pieces, layer })
    firstPiece += pieces
  }
  if (sha1s.length !== firstPiece * 20)
    throw new Error(`${sha1s.length} bytes of SHA-1 for ${firstPiece} pieces`)
  const info = encodeInfo(name, pieceBytes, placed, sha1s, true)
  return {
    name,
    pieceBytes,
    pieces: firstPiece,
    files: placed,
    info,
    infohashV1: hash('sha1', info, 'buffer'),
    infohashV2: hash('sha256', info, 'buffer'),
    infohashLossy: hash('sha1', encodeInfo(name, pieceBytes, placed, sha1s, false), 'buffer'),
  }
}

function encodeInfo(
  name: string,
  pieceBytes: number,
  files: readonly TorrentFile[],
  sha1s: Uint8Array,
  hasLeaves: boolean,
): Buffer {
  const tree = new Map<string, Bencodable>()
  const list: Bencodable[] = []
  for (const file of files) {
    const root = rootOf(file, pieceBytes)
    const leaf = new Map<string, Bencodable>([['length', file.sizeBytes]])
    if (root !== undefined) leaf.set('pieces root', root)
    tree.set(file.name, new Map(hasLeaves ? [['', leaf]] : []))
    list.push(
      new Map<string, Bencodable>([
        ['length', file.sizeBytes],
        ['path', [file.name]],
      ]),
    )
    const pad = file.pieces * pieceBytes - file.sizeBytes
    // After the last file too, though nothing follows that must be aligned: other programs do so, and their
    // infohashes of the same files must be equal to these.
    if (pad > 0) list.push(padFile(pad))
  }
  return encodeBencode(
    new Map<string, Bencodable>([
      ['file tree', tree],
      ['files', list],
      ['meta version', 2],
      ['name', name],
      ['piece length', pieceBytes],
      ['pieces', sha1s],
    ]),
  )
}

function padFile(length: number): Bencodable {
  return new Map<string, Bencodable>([
    ['attr', 'p'],
    ['length', length],
    ['path', ['.pad', String(length)]],
  ])
}

/** The root of a file's hash tree; none for an empty file. */
export function rootOf(file: PlannedFile, pieceBytes: number): Uint8Array | undefined {
  if (file.layer.length <= 32) return file.layer.length === 0 ? undefined : file.layer
  return merkleRoot(file.layer, Math.log2(pieceBytes / blockBytes))
}

/** The .torrent file: info, the layers of files longer than a piece, and `trackers` where there are any. */
export function torrentBytes(torrent: Torrent, trackers: readonly string[] = []): Buffer {
  const layers = new Map<string, Bencodable>()
  for (const file of torrent.files) {
    const root = file.pieces > 1 ? rootOf(file, torrent.pieceBytes) : undefined
    if (root !== undefined) layers.set(Buffer.from(root).toString('latin1'), file.layer)
  }
  // Keys in order, so that the info dictionary can go in as the very bytes that were hashed.
  const parts: (string | Uint8Array)[] = ['d']
  if (trackers[0] !== undefined) parts.push('8:announce', encodeBencode(trackers[0]))
  if (trackers.length > 1) parts.push('13:announce-list', encodeBencode([trackers]))
  parts.push('4:info', torrent.info, '12:piece layers', encodeBencode(layers), 'e')
  return Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array)))
}

/** The infohashes by which peers request a torrent, 20 bytes each. */
export function infohashesOf({ infohashV1, infohashV2, infohashLossy }: Torrent): readonly Buffer[] {
  return [infohashV1, infohashV2.subarray(0, 20), infohashLossy]
}

/** The magnet of both versions, BEP 9 and 52. */
export function magnetOf({ infohashV1, infohashV2, name }: Torrent): string {
  const [v1, v2] = [infohashV1.toString('hex'), infohashV2.toString('hex')]
  return `magnet:?xt=urn:btih:${v1}&xt=urn:btmh:1220${v2}&dn=${name}`
}

/** Bytes of a piece that are of its file; the rest, up to the piece's full size, is zeros. */
export function pieceSize(torrent: Torrent, file: TorrentFile, piece: number): number {
  return Math.min(torrent.pieceBytes, file.sizeBytes - (piece - file.firstPiece) * torrent.pieceBytes)
}

/** The file that a piece belongs to, by binary search; undefined outside of the torrent. */
export function fileOfPiece({ files, pieces }: Torrent, piece: number): TorrentFile | undefined {
  if (!Number.isInteger(piece) || piece < 0 || piece >= pieces) return undefined
  let [low, high] = [0, files.length - 1]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (files[middle]!.firstPiece <= piece) low = middle
    else high = middle - 1
  }
  // Empty files share their first piece's number with the next one, and lie before it.
  return files[low]
}

/** Where a block lies in its file: bytes of it that are the file's, the rest is zeros. Undefined outside of the torrent. */
export function placeBlock(
  torrent: Torrent,
  piece: number,
  begin: number,
  length: number,
): { readonly file: TorrentFile; readonly position: number; readonly bytes: number } | undefined {
  const file = fileOfPiece(torrent, piece)
  if (file === undefined || length < 1 || begin + length > torrent.pieceBytes) return undefined
  const position = (piece - file.firstPiece) * torrent.pieceBytes + begin
  return { file, position, bytes: Math.max(0, Math.min(length, file.sizeBytes - position)) }
}
