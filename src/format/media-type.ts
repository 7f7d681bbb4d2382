import type { Tag } from './tag.js'

/** The type of bytes of which nothing is known. */
export const unknownType = 'application/octet-stream'

const extensions: readonly (readonly [type: string, names: string])[] = [
  ['text/html', 'html htm shtml'],
  ['text/css', 'css'],
  ['application/javascript', 'js mjs'],
  ['application/json', 'json map'],
  ['application/ld+json', 'jsonld'],
  ['application/manifest+json', 'webmanifest'],
  ['application/geo+json', 'geojson'],
  ['text/plain', 'txt text log conf def list in ini'],
  ['text/markdown', 'md markdown'],
  ['text/csv', 'csv'],
  ['text/tab-separated-values', 'tsv'],
  ['text/yaml', 'yaml yml'],
  ['text/calendar', 'ics'],
  ['text/vcard', 'vcard vcf'],
  ['text/cache-manifest', 'appcache manifest'],
  ['application/xml', 'xml xsl xsd rng'],
  ['application/xhtml+xml', 'xhtml xht'],
  ['application/rss+xml', 'rss'],
  ['application/atom+xml', 'atom'],
  ['application/rtf', 'rtf'],
  ['image/svg+xml', 'svg svgz'],
  ['image/png', 'png'],
  ['image/apng', 'apng'],
  ['image/jpeg', 'jpg jpeg jpe'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
  ['image/avif', 'avif'],
  ['image/heic', 'heic'],
  ['image/heif', 'heif'],
  ['image/bmp', 'bmp'],
  ['image/x-icon', 'ico'],
  ['image/tiff', 'tif tiff'],
  ['image/vnd.adobe.photoshop', 'psd'],
  ['audio/mpeg', 'mp3 mpga mp2 mp2a m2a m3a'],
  ['audio/mp4', 'm4a mp4a'],
  ['audio/x-aac', 'aac'],
  ['audio/wav', 'wav'],
  ['audio/ogg', 'ogg oga spx'],
  ['audio/x-flac', 'flac'],
  ['audio/midi', 'mid midi kar rmi'],
  ['audio/webm', 'weba'],
  ['video/mp4', 'mp4 mp4v mpg4'],
  ['video/x-m4v', 'm4v'],
  ['video/quicktime', 'mov qt'],
  ['video/webm', 'webm'],
  ['video/ogg', 'ogv'],
  ['video/mpeg', 'mpeg mpg mpe m1v m2v'],
  ['video/x-msvideo', 'avi'],
  ['video/x-matroska', 'mkv mk3d mks'],
  ['video/3gpp', '3gp 3gpp'],
  ['video/mp2t', 'ts'],
  ['application/vnd.apple.mpegurl', 'm3u8'],
  ['application/dash+xml', 'mpd'],
  ['application/pdf', 'pdf'],
  ['application/epub+zip', 'epub'],
  ['application/msword', 'doc dot'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'docx'],
  ['application/vnd.ms-excel', 'xls xlm xla xlc xlt xlw'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xlsx'],
  ['application/vnd.ms-powerpoint', 'ppt pps pot'],
  ['application/vnd.openxmlformats-officedocument.presentationml.presentation', 'pptx'],
  ['application/vnd.oasis.opendocument.text', 'odt'],
  ['application/vnd.oasis.opendocument.spreadsheet', 'ods'],
  ['application/vnd.oasis.opendocument.presentation', 'odp'],
  ['application/postscript', 'ps ai eps'],
  ['application/zip', 'zip'],
  ['application/gzip', 'gz'],
  ['application/x-tar', 'tar'],
  ['application/x-bzip2', 'bz2 boz'],
  ['application/x-xz', 'xz'],
  ['application/x-7z-compressed', '7z'],
  ['application/x-rar-compressed', 'rar'],
  ['application/java-archive', 'jar war ear'],
  ['application/vnd.android.package-archive', 'apk'],
  ['application/wasm', 'wasm'],
  ['application/x-bittorrent', 'torrent'],
  ['application/x-sh', 'sh'],
  ['application/x-sql', 'sql'],
  ['font/woff', 'woff'],
  ['font/woff2', 'woff2'],
  ['font/ttf', 'ttf'],
  ['font/otf', 'otf'],
  ['application/vnd.ms-fontobject', 'eot'],
  ['model/gltf-binary', 'glb'],
  ['model/gltf+json', 'gltf'],
]

const byExtension: ReadonlyMap<string, string> = new Map(
  extensions.flatMap(([type, names]) => names.split(' ').map((name) => [name, type])),
)

/**
 * What an answer may have as its Content-Type. Where a tag says a word without a slash (`png`, `a.png`), gateways of the network
 * take it for the end of a file's name; a word that is no known one becomes the unknown type.
 */
export function mediaTypeOf(text: string): string {
  if (text.includes('/')) return text
  return byExtension.get(text.slice(text.lastIndexOf('.') + 1).toLowerCase()) ?? unknownType
}

/** A type without its parameters, lower case: what rules and routes compare. */
export function bareType(contentType: string): string {
  const semicolon = contentType.indexOf(';')
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase()
}

/** What the tags of a transaction or item say of its payload, where a header field can hold it. */
export interface PayloadHeaders {
  readonly contentType?: string
  readonly contentEncoding?: string
}

/**
 * Content-Type and Content-Encoding of a payload by its tags. Their names count in any letter case, because they become header
 * fields, which have none; of several the first counts.
 */
export function headersOfPayload(tags: readonly Tag[]): PayloadHeaders {
  const contentType = headerTag(tags, 'content-type')
  const contentEncoding = headerTag(tags, 'content-encoding')
  return {
    ...(contentType === undefined ? {} : { contentType }),
    ...(contentEncoding === undefined ? {} : { contentEncoding }),
  }
}

function headerTag(tags: readonly Tag[], name: string): string | undefined {
  const found = tags.find((tag) => isNamed(tag.name, name))
  return found === undefined ? undefined : fieldText(found.value)
}

/** The text of bytes where it may stand in a header field: printable ASCII of sensible length; undefined for all else. */
function fieldText(bytes: Uint8Array): string | undefined {
  const text = bytes.length > 255 ? '' : Buffer.from(bytes).toString('latin1')
  return /^[\x20-\x7e]{1,255}$/.test(text) ? text : undefined
}

/** Whether the bytes are `name`, which is in small letters, in any letter case. Tested for every tag of every item. */
export function isNamed(bytes: Uint8Array, name: string): boolean {
  if (bytes.length !== name.length) return false
  for (let at = 0; at < name.length; at++) {
    const byte = bytes[at] as number
    if ((byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte) !== name.charCodeAt(at)) return false
  }
  return true
}
