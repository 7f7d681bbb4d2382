import { abortAfter } from '../actor/clock.js'
import { bufferOf } from '../format/buffer-of.js'
import { expected } from '../format/bug.js'
import { Gathered } from '../format/gathered.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { type Asks, type Question, Upstream } from '../http/upstream.js'
import type { OpenedContent } from '../source/reading/transfer-client.js'
import type { Hints, Provenance, Window } from '../source/source-messages.js'
import { cancelBody } from '../source/transfer/cancel-body.js'

/** A part of a remote file, and the size of the whole file. */
export interface RangeBytes {
  readonly bytes: Uint8Array
  readonly sizeBytes: number
}

/** Reads parts of a remote file: exactly `[start, end)`, or a refusal. Never rejects. */
export interface Ranges {
  read(start: number, end: number): Promise<RangeBytes | Refusal>
}

export interface HttpRangesOptions {
  /** Timeout of one whole exchange; the requested parts are small. */
  readonly timeoutMs: number
  /** Connections to one server. */
  readonly connectionsMax: number
}

/** One pool of connections for all remote indexes of a thread. */
export function rangesUpstream({ timeoutMs, connectionsMax }: HttpRangesOptions): Upstream {
  // Each exchange also has a timeout as a whole: the timeout between two pieces alone would let a very slow server go
  // on forever.
  return new Upstream({
    connections: connectionsMax,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect: { timeout: Math.min(timeoutMs, 10_000) },
    maxResponseSize: 16 * 1024 * 1024,
  })
}

function questionTo(url: string): Question {
  const { origin, pathname, search } = new URL(url)
  return { origin, path: pathname + search, method: 'GET' }
}

function bad(message: string): Refusal {
  return refuse('upstream', 'upstream', message)
}

/** A file behind a web server that knows ranges (RFC 9110 section 14). Redirects are not followed. */
export function httpRanges(url: string, upstream: Asks, timeoutMs: number): Ranges {
  return {
    async read(start, end) {
      const signal = abortAfter(timeoutMs)
      try {
        const headers = { range: `bytes=${start}-${end - 1}`, 'accept-encoding': 'identity' }
        const answer = await upstream.request({ ...questionTo(url), headers, signal })
        const { statusCode, body } = answer
        const contentRange = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16})$/.exec(
          String(answer.headers['content-range']),
        )
        const [, from, to, size] = (contentRange ?? []).map(Number)
        if (statusCode !== 206 || from !== start || to !== end - 1 || size === undefined || size < end) {
          // Not the requested bytes, so the body is not read.
          void cancelBody(body)
          return bad(`${url} answered ${statusCode} to a range`)
        }
        const bytes = await body.bytes()
        if (bytes.length !== end - start) return bad(`${url} sent ${bytes.length} bytes of ${end - start}`)
        return { bytes, sizeBytes: size }
      } catch (error) {
        return failure(url, error, signal)
      }
    },
  }
}

/** Why nothing came: `late` where the time was over. */
function failure(url: string, error: unknown, signal: AbortSignal): Refusal {
  if (signal.aborted) return refuse('late', 'upstream', `${url} did not answer in time`)
  return bad(`${url}: ${expected(error).message}`)
}

/** A small document behind a web server, at most `maxBytes`. Redirects are not followed. Never rejects. */
export async function fetchDocument(
  url: string,
  upstream: Asks,
  maxBytes: number,
  timeoutMs: number,
): Promise<Uint8Array | Refusal> {
  const signal = abortAfter(timeoutMs)
  try {
    const { statusCode, body } = await upstream.request({ ...questionTo(url), signal })
    const gathered = new Gathered()
    if (statusCode !== 200) {
      void cancelBody(body)
      return bad(`${url} answered ${statusCode}`)
    }
    for await (const piece of body as AsyncIterable<Uint8Array>) {
      if (gathered.sizeBytes + piece.length > maxBytes)
        return refuse('too-large', 'upstream', `${url}: over ${maxBytes} bytes`)
      gathered.add(piece)
    }
    return bufferOf(gathered.bytes())
  } catch (error) {
    return failure(url, error, signal)
  }
}

/** Opens content by id: the gateway's own way to it. */
export interface ContentSource {
  open(wanted: {
    readonly id: Id
    readonly hints: Hints
    readonly provenance: Provenance
    readonly window?: Window
  }): Promise<OpenedContent | Refusal>
}

const ourselves: Provenance = { hops: 0, via: [], forward: true }

/** Content by id, or (`offset`, `sizeBytes`) a stretch of it, through the gateway's own way to content. */
export function contentRanges(
  source: ContentSource,
  id: Id,
  region?: { readonly offset: number; readonly sizeBytes: number },
): Ranges {
  return {
    async read(start, end) {
      if (region !== undefined && end > region.sizeBytes) return bad(`${id}: beyond its stretch`)
      const from = start + (region?.offset ?? 0)
      const to = end + (region?.offset ?? 0)
      const opened = await source.open({
        id,
        hints: {},
        provenance: ourselves,
        window: { start: from, end: to - 1 },
      })
      if (isRefusal(opened)) return opened
      const { content, attributes } = opened
      try {
        const bytes = Buffer.alloc(to - from)
        for (let at = from; at < to; ) {
          const piece = content.read(at, to)
          if (piece === undefined) {
            if (!(await content.ready(at, to))) return bad(`${id}: its source broke`)
            continue
          }
          bytes.set(piece, at - from)
          at += piece.length
        }
        return { bytes, sizeBytes: region?.sizeBytes ?? attributes.size }
      } finally {
        content.close()
      }
    },
  }
}
