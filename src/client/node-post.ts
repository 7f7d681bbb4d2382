import { Gathered } from '../format/gathered.js'
import { besideFetch } from './beside-fetch.js'

interface NodeAnswer {
  readonly statusCode?: number
  readonly rawHeaders: readonly string[]
  on(event: 'data', listen: (piece: Uint8Array) => void): void
  on(event: 'end' | 'close', listen: () => void): void
}

interface NodeRequest {
  readonly writableFinished: boolean
  on(event: 'response', listen: (answer: NodeAnswer) => void): void
  on(event: 'error', listen: (error: Error) => void): void
  end(body: Uint8Array): void
  destroy(error?: Error): void
}

interface NodeHttp {
  request(url: string, options: { method: string; headers: Record<string, string> }): NodeRequest
}

/** Answers to what is sent are small. */
const answerBytesMax = 64 * 1024 * 1024

/** Statuses whose answers have no body (`Response` insists on that). */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Sends a long body as it lies in memory, by what Node has beside `fetch`, and resolves with the whole answer. Redirects are not
 * followed. When it is over, well or not, nothing reads the body any more. Rejects as `fetch` does: with an Error whose cause
 * says why. `fetch` does it where that is not `usual` any more.
 */
export function nodePost(
  url: string,
  init: Omit<RequestInit, 'body'> & { readonly body: Uint8Array },
  usual: typeof fetch,
): Promise<Response> {
  const { method = 'POST', headers, body, signal } = init
  const http = besideFetch<NodeHttp>(url.startsWith('https:') ? 'node:https' : 'node:http', usual)
  if (http === undefined) return fetch(url, init as RequestInit)
  return new Promise((resolve, reject) => {
    const length = { 'content-length': String(body.length) }
    const request = http.request(url, {
      method,
      headers: { ...Object.fromEntries(new Headers(headers)), ...length },
    })
    const stop = (): void => request.destroy(new Error('stopped'))
    const failed = (why: Error): void => {
      signal?.removeEventListener('abort', stop)
      request.destroy()
      reject(new Error('the request failed', { cause: why }))
    }
    if (signal?.aborted === true) stop()
    signal?.addEventListener('abort', stop, { once: true })
    request.on('error', failed)
    request.on('response', (answer) => {
      const gathered = new Gathered()
      answer.on('data', (piece) => {
        if (gathered.sizeBytes + piece.length > answerBytesMax)
          failed(new Error('an answer of more than 64 MiB'))
        else gathered.add(piece)
      })
      // Behind its end this event has no meaning.
      answer.on('close', () => failed(new Error('the answer broke off')))
      answer.on('end', () => {
        const status = answer.statusCode ?? 0
        // `Response` takes no others, and what is thrown in here would end the program.
        if (status < 200 || status > 599) return failed(new Error(`an answer of the status ${status}`))
        const lines = new Headers()
        for (let at = 0; at + 1 < answer.rawHeaders.length; at += 2)
          lines.append(answer.rawHeaders[at] ?? '', answer.rawHeaders[at + 1] ?? '')
        signal?.removeEventListener('abort', stop)
        // An answer may come before all was sent.
        if (!request.writableFinished) request.destroy()
        resolve(new Response(bodiless.has(status) ? null : gathered.bytes(), { status, headers: lines }))
      })
    })
    request.end(body)
  })
}
