import { type Refusal, refuse } from '../format/refusal.js'
import { type BencodeDictionary, type Bencoded, type BencodeLimits, decodeBencode } from './bencode.js'
import { blockBytes, composeTorrent, isPlainFileName, type PlannedFile, type Torrent } from './torrent.js'
import { merkleRoot } from './tree.js'

/** Bounds for torrents of others. */
export interface TorrentLimits {
  readonly filesMax: number
  /** Bytes of all files together at most. */
  readonly bytesMax: number
  readonly pieceBytesMax: number
}

/** Torrents read here have at most 1,024 files; one of 64 GiB in pieces of 16 KiB has 128 MiB of hashes: refused by size. */
export const torrentLimits: TorrentLimits = {
  filesMax: 1024,
  bytesMax: 64 * 2 ** 30,
  pieceBytesMax: 64 << 20,
}

/** A .torrent file of 64 GiB in 256 KiB pieces has 13 MiB. */
export const torrentFileMaxBytes = 16 << 20

const bencodeLimits: BencodeLimits = { depthMax: 8, valuesMax: 16 * 1024 }

function bad(why: string): Refusal {
  return refuse('forged', 'upstream', `not a torrent of the form made here: ${why}`)
}

function isDictionary(value: Bencoded | undefined): value is BencodeDictionary {
  return value instanceof Map
}

/**
 * Reads a .torrent file (at most `torrentFileMaxBytes`) of another program. Only file tree, piece length, SHA-1 hashes and piece
 * layers are taken from it. Everything else must be, byte by byte, what this program would write. So no other part can contradict
 * them: no second list of files, no path, no unusual padding.
 */
export function readTorrent(bytes: Uint8Array, limits = torrentLimits): Torrent | Refusal {
  if (bytes.length > torrentFileMaxBytes) return bad(`${bytes.length} bytes`)
  const read = decodeBencode(bytes, bencodeLimits)
  const span = read?.spans.get('info')
  if (read === undefined || span === undefined || !isDictionary(read.value))
    return bad('not canonical bencoding')
  const info = read.value.get('info')
  const layers = read.value.get('piece layers') ?? new Map<string, Bencoded>()
  if (!isDictionary(info) || !isDictionary(layers)) return bad('no info or piece layers')
  const [name, sha1s, pieceBytes] = [info.get('name'), info.get('pieces'), info.get('piece length')]
  if (!(name instanceof Uint8Array) || !(sha1s instanceof Uint8Array)) return bad('no name or pieces')
  const nameText = Buffer.from(name).toString('latin1')
  if (!isPlainFileName(nameText)) return bad('its name')
  if (typeof pieceBytes !== 'number' || !isPieceLength(pieceBytes, limits)) return bad('its piece length')
  const files = readFiles(info.get('file tree'), layers, pieceBytes, limits)
  if ('refused' in files) return files
  const pieces = files.reduce((sum, file) => sum + file.layer.length / 32, 0)
  if (sha1s.length !== pieces * 20) return bad('its number of pieces')
  const torrent = composeTorrent(nameText, pieceBytes, files, Uint8Array.from(sha1s))
  if (!torrent.info.equals(bytes.subarray(...span))) return bad('the two versions in it differ')
  return torrent
}

function isPieceLength(pieceBytes: number, limits: TorrentLimits): boolean {
  const isPower = Number.isInteger(Math.log2(pieceBytes))
  return isPower && pieceBytes >= blockBytes && pieceBytes <= limits.pieceBytesMax
}

function readFiles(
  tree: Bencoded | undefined,
  layers: BencodeDictionary,
  pieceBytes: number,
  limits: TorrentLimits,
): readonly PlannedFile[] | Refusal {
  if (!isDictionary(tree) || tree.size === 0 || tree.size > limits.filesMax) return bad('its number of files')
  const files: PlannedFile[] = []
  let total = 0
  for (const [name, entry] of tree) {
    if (!isPlainFileName(name)) return bad('a name in it')
    const leaf = isDictionary(entry) && entry.size === 1 ? entry.get('') : undefined
    if (!isDictionary(leaf)) return bad('a folder in it')
    const [sizeBytes, root] = [leaf.get('length'), leaf.get('pieces root')]
    if (typeof sizeBytes !== 'number' || sizeBytes < 0) return bad('a size in it')
    total += sizeBytes
    if (total > limits.bytesMax) return bad('its size')
    const layer = readLayer(root, layers, sizeBytes, pieceBytes)
    if (layer === undefined) return bad('the hashes of a file')
    files.push({ name, sizeBytes, layer })
  }
  return files
}

/** The hashes of a file's pieces, copied, after the root that they give was checked. */
function readLayer(
  root: Bencoded | undefined,
  layers: BencodeDictionary,
  sizeBytes: number,
  pieceBytes: number,
): Uint8Array | undefined {
  if (sizeBytes === 0) return root === undefined ? new Uint8Array(0) : undefined
  if (!(root instanceof Uint8Array) || root.length !== 32) return undefined
  const pieces = Math.ceil(sizeBytes / pieceBytes)
  if (pieces === 1) return Uint8Array.from(root)
  const layer = layers.get(Buffer.from(root).toString('latin1'))
  if (!(layer instanceof Uint8Array) || layer.length !== pieces * 32) return undefined
  const made = merkleRoot(layer, Math.log2(pieceBytes / blockBytes))
  return Buffer.from(made).equals(root) ? Uint8Array.from(layer) : undefined
}
