import { createHash, createHmac } from 'node:crypto'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { Window } from '../source-messages.js'
import type { HeaderLines } from '../upstream/gateway-headers.js'
import type { ObjectHead, StoreFault, StoreRefusal } from './object-store.js'

/** Who asks. Never logged, and in no message. */
export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

export interface S3Place {
  /** Base URL of the service. */
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
}

/** SHA-256 of no bytes: requests without a body. */
const emptyHash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** How AWS writes times: `20130524T000000Z`. */
function amzDate(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, '')
}

/** Text as a part of a query: everything but letters, digits and -._~ is escaped. */
function encodePart(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** A key as a part of a path. Slashes stay; an empty prefix leaves a key that begins with one. */
export function encodeKey(key: string): string {
  return encodePart(key).replace(/%2F/g, '/')
}

function hexSha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** A request, before it is signed. */
export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** Absent: the bucket itself. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** SHA-256 of the body. */
  readonly sha256?: Uint8Array
}

function hmac(key: string | Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

const service = 's3/aws4_request'

/**
 * Signs requests by AWS Signature Version 4, in the header
 * (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html). Ranges and types are not signed: proxies may
 * change them.
 */
export class S3Signer {
  /** The key of a day. */
  #key: { readonly day: string; readonly secret: string; readonly bytes: Buffer } | undefined
  readonly #host: string
  /** Path of the endpoint, in front of all others. */
  readonly #base: string

  constructor(
    private readonly place: S3Place,
    /** Read with each request: they may change. */
    private readonly credentials: () => S3Credentials,
  ) {
    const { host, pathname } = new URL(place.endpoint)
    this.#host = host
    this.#base = pathname.replace(/\/$/, '')
  }

  /** Path with query, and header lines, signed for the time `atMs`. */
  sign(
    { method, key, query = {}, headers = {}, sha256 }: S3Request,
    atMs: number,
  ): { readonly path: string; readonly headers: Record<string, string> } {
    const bucket = encodeKey(this.place.bucket)
    const path = `${this.#base}/${bucket}${key === undefined ? '' : `/${encodeKey(key)}`}`
    const words = Object.entries(query)
      .map(([name, value]) => `${encodePart(name)}=${encodePart(value)}`)
      .sort()
      .join('&')
    const { accessKeyId, secretAccessKey, sessionToken } = this.credentials()
    const time = amzDate(atMs)
    const bodyHash = sha256 === undefined ? emptyHash : Buffer.from(sha256).toString('hex')
    const sent: Record<string, string> = {
      ...headers,
      'x-amz-content-sha256': bodyHash,
      'x-amz-date': time,
      ...(sessionToken === undefined ? {} : { 'x-amz-security-token': sessionToken }),
    }
    const lines = Object.entries({ ...sent, host: this.#host })
      .filter(([name]) => name.startsWith('x-amz-') || name === 'host' || name === 'if-none-match')
      .sort(([one], [other]) => (one < other ? -1 : 1))
    const names = lines.map(([name]) => name).join(';')
    const text = lines.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, ' ')}\n`).join('')
    const canonical = [method, path, words, text, names, bodyHash].join('\n')
    const scope = `${time.slice(0, 8)}/${this.place.region}/${service}`
    const message = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${hexSha256(canonical)}`
    const signature = hmac(this.#keyOf(time.slice(0, 8), secretAccessKey), message).toString('hex')
    const credential = `${accessKeyId}/${scope}`
    sent.authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`
    sent['accept-encoding'] = 'identity'
    return { path: words === '' ? path : `${path}?${words}`, headers: sent }
  }

  #keyOf(day: string, secret: string): Buffer {
    if (this.#key?.day === day && this.#key.secret === secret) return this.#key.bytes
    const ofDay = hmac(`AWS4${secret}`, day)
    const bytes = hmac(hmac(hmac(ofDay, this.place.region), 's3'), 'aws4_request')
    this.#key = { day, secret, bytes }
    return bytes
  }
}

const faults: Readonly<Record<string, StoreFault>> = {
  InvalidAccessKeyId: 'credentials',
  SignatureDoesNotMatch: 'credentials',
  ExpiredToken: 'credentials',
  InvalidToken: 'credentials',
  RequestTimeTooSkewed: 'clock',
  NoSuchBucket: 'bucket',
  PermanentRedirect: 'bucket',
  TemporaryRedirect: 'bucket',
  AuthorizationHeaderMalformed: 'bucket',
  QuotaExceeded: 'full',
  InsufficientStorage: 'full',
  InsufficientCapacity: 'full',
}

/** The code of an error document; undefined where there is none. */
export function errorCode(document: Uint8Array): string | undefined {
  return /<Code>([A-Za-z0-9]{1,60})<\/Code>/.exec(Buffer.from(document).toString('latin1'))?.[1]
}

/** What an answer that is no success means. `code`: of its error document. */
export function refusalOfStatus(status: number, code: string | undefined): Refusal | StoreRefusal {
  const fault = faults[code ?? ''] ?? faultOfStatus(status)
  const words = `the object store answered ${status}${code === undefined ? '' : ` ${code}`}`
  if (fault !== undefined) return { ...refuse('upstream', 'upstream', words), storeFault: fault }
  if (status === 404) return refuse('unknown', 'client', 'Not found')
  if (status === 416) return refuse('unsatisfiable', 'client', 'the range is outside of the content')
  if (status === 409 || status === 429 || status === 503) return refuse('busy', 'upstream', words)
  return refuse('upstream', 'upstream', words)
}

function faultOfStatus(status: number): StoreFault | undefined {
  if (status === 401 || status === 403) return 'denied'
  if (status >= 300 && status < 400) return 'bucket'
  return status === 507 ? 'full' : undefined
}

const metaName = 'x-amz-meta-'

function lengthOf(value: HeaderLines[string]): number | undefined {
  const length = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN
  return Number.isSafeInteger(length) ? length : undefined
}

/** The head of an object; undefined where it does not say how long it is. `isPart`: of an answer 206. */
export function headOf(lines: HeaderLines, isPart: boolean): ObjectHead | undefined {
  const range = lines['content-range']
  const ofPart = typeof range === 'string' ? /^bytes \d+-\d+\/(\d+)$/.exec(range)?.[1] : undefined
  const sizeBytes = lengthOf(isPart ? ofPart : lines['content-length'])
  if (sizeBytes === undefined) return undefined
  const contentType = lines['content-type']
  const metadata = Object.entries(lines).flatMap(([name, value]) =>
    name.startsWith(metaName) && typeof value === 'string' ? [[name.slice(metaName.length), value]] : [],
  )
  return {
    sizeBytes,
    ...(typeof contentType === 'string' ? { contentType } : {}),
    metadata: Object.fromEntries(metadata) as Record<string, string>,
  }
}

/** The part of an object that an answer has. */
export function partOf(lines: HeaderLines): Window | undefined {
  const range = lines['content-range']
  const parts = typeof range === 'string' ? /^bytes (\d{1,16})-(\d{1,16})\//.exec(range) : null
  return parts === null ? undefined : { start: Number(parts[1]), end: Number(parts[2]) }
}

/** Keys of a ListObjectsV2 document whose keys are URL-encoded. */
export function keysOfList(document: string): { readonly keys: string[]; readonly hasMore: boolean } {
  const keys: string[] = []
  for (const [, key = ''] of document.matchAll(
    /<Contents>[\s\S]*?<Key>([^<]*)<\/Key>[\s\S]*?<\/Contents>/g,
  )) {
    try {
      keys.push(decodeURIComponent(key.replaceAll('+', ' ')))
    } catch {
      // No key of ours is written so.
    }
  }
  return { keys, hasMore: /<IsTruncated>true<\/IsTruncated>/.test(document) }
}
