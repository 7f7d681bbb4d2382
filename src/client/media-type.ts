import type { TextTag } from './tags.js'

const unknownType = 'application/octet-stream'

/** Content types by the ends of names. */
const types: Readonly<Record<string, string>> = {
  html: 'text/html',
  htm: 'text/html',
  css: 'text/css',
  js: 'text/javascript',
  mjs: 'text/javascript',
  json: 'application/json',
  txt: 'text/plain',
  md: 'text/markdown',
  xml: 'application/xml',
  svg: 'image/svg+xml',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  avif: 'image/avif',
  ico: 'image/x-icon',
  pdf: 'application/pdf',
  woff: 'font/woff',
  woff2: 'font/woff2',
  ttf: 'font/ttf',
  wasm: 'application/wasm',
  mp4: 'video/mp4',
  webm: 'video/webm',
  mp3: 'audio/mpeg',
  ogg: 'audio/ogg',
  zip: 'application/zip',
  csv: 'text/csv',
  gz: 'application/gzip',
  map: 'application/json',
  webmanifest: 'application/manifest+json',
}

/** The content type that a file's name stands for; `application/octet-stream` where the name has no known end. */
export function typeOfName(name: string): string {
  const [, end = ''] = /[^/]\.(\w+)$/.exec(name) ?? []
  return typeOfEnd(end)
}

function typeOfEnd(end: string): string {
  const small = end.toLowerCase()
  return Object.hasOwn(types, small) ? (types[small] as string) : unknownType
}

/** The value of the first tag called Content-Type: in any letter case, as names of header fields have none. */
export function typeTagOf(tags: readonly TextTag[]): string | undefined {
  return tags.find(({ name }) => name.toLowerCase() === 'content-type')?.value
}

/** The type of an answer: gateways take a word without a slash (`png`) for the end of a file's name. */
export function answerType(stated: string | undefined): string {
  if (stated === undefined || !/^[\x20-\x7e]*$/.test(stated)) return unknownType
  return stated.includes('/') ? stated : typeOfEnd(stated.slice(stated.lastIndexOf('.') + 1))
}

/** A type without its parameters, in small letters: what is compared. */
export function bareType(type: string): string {
  return (type.split(';', 1)[0] ?? '').trim().toLowerCase()
}
