import { utf8 } from './bytes.js'
import { isJsonWithin, parsedJson } from './json.js'
import { type Refusal, refuse } from './refusal.js'

/**
 * A path manifest (`arweave/paths`, versions 0.1.0 and 0.2.0): a JSON object that names an item for each path.
 *
 *     { "manifest": "arweave/paths", "version": "0.2.0",
 *       "index": { "path": "index.html" } or { "id": "..." }, "fallback": { "id": "..." },
 *       "paths": { "index.html": { "id": "..." } } }
 *
 * Read as tolerantly as by gateways in use: the value of `manifest` is not checked, any version but 0.2.0 is read as
 * 0.1.0 (no `index.id`, no `fallback`), and an id is checked only when its path is requested.
 */
export interface Manifest {
  /** Paths without slashes at their ends, and the ids as written. */
  readonly paths: ReadonlyMap<string, string>
  /** The id for the empty path (the index, already resolved through `paths`), as written. */
  readonly index: string | undefined
  /** The id for paths that are not there, as written. */
  readonly fallback: string | undefined
}

export interface ManifestLimits {
  /** Bytes of the JSON text. */
  readonly sizeBytes: number
  readonly pathsMax: number
  /** UTF-8 bytes of one path. A longer path could not be requested: request heads above 16 KiB are refused. */
  readonly pathMaxBytes: number
}

/** Most JSON values for each allowed path. This bounds the memory of parsing: some 60 bytes for each value. */
const partsPerPath = 8
const partsMin = 4096

function malformed(message: string): Refusal {
  return refuse('malformed', 'upstream', `manifest: ${message}`)
}

function tooLarge(message: string): Refusal {
  return refuse('too-large', 'upstream', `manifest: ${message}`)
}

type Fields = Readonly<Record<string, unknown>>

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The own member `name` of an object where it is a string. Inherited properties are never read. */
function textOf(fields: unknown, name: string): string | undefined {
  if (!isFields(fields) || !Object.hasOwn(fields, name)) return undefined
  const value = fields[name]
  return typeof value === 'string' ? value : undefined
}

/** `path` without the slashes at its end: they are ignored in keys and in requested paths. */
export function trimSlashes(path: string): string {
  let end = path.length
  while (end > 0 && path.charCodeAt(end - 1) === 0x2f) end--
  return path.slice(0, end)
}

/** Keys that differ only in slashes at the end are one path; the first one wins. */
function readPaths(
  value: unknown,
  { pathsMax, pathMaxBytes }: ManifestLimits,
): Map<string, string> | Refusal {
  const paths = new Map<string, string>()
  if (!isFields(value)) return paths
  for (const key of Object.keys(value)) {
    const id = textOf(value[key], 'id')
    const path = trimSlashes(key)
    if (id === undefined || paths.has(path)) continue
    if (paths.size === pathsMax) return tooLarge(`more than ${pathsMax} paths`)
    // UTF-8 needs at most three bytes for each UTF-16 unit, so short paths need not be measured.
    if (path.length * 3 > pathMaxBytes && utf8(path).length > pathMaxBytes) {
      return tooLarge(`a path of more than ${pathMaxBytes} bytes`)
    }
    paths.set(path, id)
  }
  return paths
}

/** In 0.2.0 an index may have both an id and a path: the id wins. */
function readIndex(value: unknown, withId: boolean, paths: ReadonlyMap<string, string>): string | undefined {
  const id = withId ? textOf(value, 'id') : undefined
  if (id !== undefined) return id
  const path = textOf(value, 'path')
  return path === undefined ? undefined : paths.get(trimSlashes(path))
}

/**
 * Reads a manifest from its JSON text in UTF-8. The memory that this takes is bounded by the limits. Refusals: `malformed` where
 * it is no JSON object, `too-large` beyond a limit.
 */
export function parseManifest(source: Uint8Array, limits: ManifestLimits): Manifest | Refusal {
  if (source.length > limits.sizeBytes) return tooLarge(`more than ${limits.sizeBytes} bytes`)
  const partsMax = partsMin + limits.pathsMax * partsPerPath
  const text = new TextDecoder().decode(source)
  // Paths may be numbers.
  if (!isJsonWithin(text, { values: partsMax, integers: partsMax }))
    return tooLarge(`more than ${partsMax} values`)
  const json = parsedJson(text)
  if (!isFields(json)) return malformed('not a JSON object')
  const withId = textOf(json, 'version') === '0.2.0'
  const own = (name: string) => (Object.hasOwn(json, name) ? json[name] : undefined)
  const paths = readPaths(own('paths'), limits)
  if (!(paths instanceof Map)) return paths
  const fallback = withId ? textOf(own('fallback'), 'id') : undefined
  return { paths, index: readIndex(own('index'), withId, paths), fallback }
}
