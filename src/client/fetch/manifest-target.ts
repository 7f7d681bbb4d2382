import { parseManifest, trimSlashes } from '../../format/manifest.js'
import { isRefusal } from '../../format/refusal.js'

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch (error) {
    if (error instanceof URIError) return path
    throw error
  }
}

/** A manifest is whole in memory already: what parsing it may take is bounded, some 60 bytes for each of its values. */
const limits = {
  sizeBytes: Number.POSITIVE_INFINITY,
  pathsMax: 500_000,
  pathMaxBytes: Number.POSITIVE_INFINITY,
}

/**
 * The id that a path of a manifest (JSON in UTF-8) means, as it stands in an address: itself, the index of its folder, or the
 * fallback. Undefined where it means none, or where the bytes are no manifest.
 */
export function manifestTarget(bytes: Uint8Array, path: string): string | undefined {
  const manifest = parseManifest(bytes, limits)
  if (isRefusal(manifest)) return undefined
  const wanted = trimSlashes(decoded(path))
  return wanted === '' ? manifest.index : (manifest.paths.get(wanted) ?? manifest.fallback)
}
