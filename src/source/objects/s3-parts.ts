import { sha256Of } from '../../../native/digest/digest.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { UpstreamAnswer } from '../upstream/upstream-answer.js'
import type { LargeContent, ObjectContent } from './object-store.js'
import { gathered, listMaxBytes } from './s3-documents.js'
import { errorCode, refusalOfStatus, type S3Request } from './s3-requests.js'

/** Asks the service; `moreMs`: patience besides what every request has. */
export type AskS3 = (
  request: S3Request,
  signal: AbortSignal,
  content?: ObjectContent,
  moreMs?: number,
) => Promise<UpstreamAnswer | 'exists' | Refusal>

/** Parts in memory at once, and the bytes of one; S3 takes 10,000 of 5 MiB or more. */
const [atOnce, partUsualBytes, partsMax] = [2, 16 * 1024 * 1024, 10_000] as const
/** Some services put the parts together before they answer. */
const completeMs = 60_000

const garbled = refuse(
  'upstream',
  'upstream',
  'the object store answered an upload in parts in no known form',
)

/** Uploads in parts (https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html). */
export class S3Parts {
  constructor(private readonly ask: AskS3) {}

  async put(key: string, content: LargeContent, signal: AbortSignal): Promise<'put' | Refusal> {
    const begun = await this.#document({ method: 'POST', key, query: { uploads: '' } }, signal)
    if (isRefusal(begun)) return begun
    const uploadId = wordOf(begun, 'UploadId')
    if (uploadId === undefined) return garbled
    const outcome = await this.#fill(key, uploadId, content, signal).catch(async (error: unknown) => {
      await this.#abort(key, uploadId)
      throw error
    })
    if (isRefusal(outcome)) await this.#abort(key, uploadId)
    return outcome
  }

  async #fill(
    key: string,
    uploadId: string,
    { sizeBytes, read }: LargeContent,
    signal: AbortSignal,
  ): Promise<'put' | Refusal> {
    const partBytes = Math.max(partUsualBytes, Math.ceil(sizeBytes / partsMax))
    const tags: string[] = []
    while (tags.length * partBytes < sizeBytes) {
      const first = tags.length
      const numbers = Array.from({ length: atOnce }, (_, at) => first + at)
      const put = await Promise.all(
        numbers.map(async (number) => {
          const start = number * partBytes
          if (start >= sizeBytes) return undefined
          const bytes = await read(start, Math.min(partBytes, sizeBytes - start))
          const query = { partNumber: String(number + 1), uploadId }
          return this.#part(key, query, bytes, signal)
        }),
      )
      for (const tag of put) {
        if (isRefusal(tag)) return tag
        if (tag !== undefined) tags.push(tag)
      }
    }
    const parts = tags.map((tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${tag}</ETag></Part>`)
    const body = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)
    const done = await this.#document({ method: 'POST', key, query: { uploadId } }, signal, body)
    if (isRefusal(done)) return done
    // Status 200 comes before it is known whether it is a success.
    const code = errorCode(done)
    if (code !== undefined) return refusalOfStatus(500, code)
    return done.includes('<CompleteMultipartUploadResult') ? 'put' : garbled
  }

  /** The tag of a part that was put. */
  async #part(
    key: string,
    query: Readonly<Record<string, string>>,
    bytes: Uint8Array,
    signal: AbortSignal,
  ): Promise<string | Refusal> {
    const content = contentOf(bytes)
    const headers = { 'content-length': String(bytes.length) }
    const { sha256 } = content
    const answer = await this.ask({ method: 'PUT', key, query, headers, sha256 }, signal, content)
    if (answer === 'exists' || isRefusal(answer)) return answer === 'exists' ? garbled : answer
    answer.drop()
    const tag = answer.headers.etag
    return typeof tag === 'string' && /^"?[\w-]{1,128}"?$/.test(tag) ? tag : garbled
  }

  /** Parts that stay behind are found by `drop`. */
  async #abort(key: string, uploadId: string): Promise<void> {
    const { signal } = new AbortController()
    const answer = await this.ask({ method: 'DELETE', key, query: { uploadId } }, signal)
    if (answer !== 'exists' && !isRefusal(answer)) answer.drop()
  }

  async drop(
    prefix: string,
    isLeft: (key: string) => boolean,
    signal: AbortSignal,
  ): Promise<number | Refusal> {
    const query = { 'encoding-type': 'url', prefix, uploads: '' }
    const found = await this.#document({ method: 'GET', query }, signal)
    if (isRefusal(found)) return found
    let count = 0
    for (const [, upload = ''] of found.toString('utf8').matchAll(/<Upload>([\s\S]*?)<\/Upload>/g)) {
      const bytes = Buffer.from(upload)
      const [key, uploadId] = [wordOf(bytes, 'Key'), wordOf(bytes, 'UploadId')]
      if (key === undefined || uploadId === undefined) continue
      const plain = keyOf(key)
      if (plain === undefined || !isLeft(plain)) continue
      await this.#abort(plain, uploadId)
      count += 1
    }
    return count
  }

  async #document(request: S3Request, signal: AbortSignal, body?: Uint8Array): Promise<Buffer | Refusal> {
    const content = body && contentOf(body)
    const sent =
      content === undefined
        ? request
        : { ...request, headers: { 'content-length': String(content.sizeBytes) }, sha256: content.sha256 }
    const answer = await this.ask(sent, signal, content, completeMs)
    if (answer === 'exists') return garbled
    return isRefusal(answer) ? answer : gathered(answer, listMaxBytes)
  }
}

function contentOf(bytes: Uint8Array): ObjectContent {
  return { sizeBytes: bytes.length, sha256: sha256Of(bytes), bytes: () => [bytes] }
}

/** The text of the first element of this name that has nothing but text in it. */
function wordOf(document: Uint8Array, name: string): string | undefined {
  return new RegExp(`<${name}>([^<]{1,2048})</${name}>`).exec(Buffer.from(document).toString('utf8'))?.[1]
}

function keyOf(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded.replaceAll('+', ' '))
  } catch {
    // No key of ours is written so.
    return undefined
  }
}
