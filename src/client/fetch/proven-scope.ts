import { isId } from '../../format/id.js'
import { ClientError } from '../errors.js'
import { ProvingFetcher, type ProvingFetchOptions } from './verified-fetch.js'

/** What is used of a service worker's global scope. */
export interface WorkerScope {
  readonly registration: { readonly scope: string }
  readonly clients: {
    claim(): Promise<void>
    matchAll(options: object): Promise<readonly { postMessage(message: unknown): void }[]>
  }
  skipWaiting(): Promise<void>
  addEventListener(type: string, listen: (event: WorkerEvent) => void): void
}

interface WorkerEvent {
  readonly request: Request
  waitUntil(work: Promise<unknown>): void
  respondWith(answer: Promise<Response>): void
}

/** What a request means, as `ID` or `ID/path`; undefined for what is none of ours. */
function referenceOf(scope: WorkerScope, request: Request): string | undefined {
  const base = new URL(scope.registration.scope)
  const url = new URL(request.url)
  if (request.method !== 'GET' || url.origin !== base.origin || !url.pathname.startsWith(base.pathname))
    return undefined
  const path = url.pathname.slice(base.pathname.length).replace(/^raw\//, '')
  const [first = ''] = path.split('/')
  return isId(first) ? path : undefined
}

/**
 * Proven content of a stranger is still a stranger's: on the origin of the app that registered the worker its scripts would read
 * what the app keeps. A sandbox gives the page an origin of its own (HTML Living Standard, sandboxing).
 */
const sandbox = 'sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts'

/** What a browser shows as a document of its own, or runs. */
const documents = new Set(['document', 'embed', 'frame', 'iframe', 'object', 'serviceworker'])

function isShown({ mode, destination }: Request): boolean {
  return mode === 'navigate' || documents.has(destination)
}

function rangeOf(request: Request): { start: number; end?: number } | undefined {
  const [, start, end] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get('range') ?? '') ?? []
  if (start === undefined) return undefined
  return { start: Number(start), ...(end !== '' && { end: Number(end) }) }
}

/**
 * Answers GET below a worker's scope for `ID`, `ID/path` and `raw/ID`, and so all that such a page loads by relative paths. What
 * cannot be proven is an error page instead. Pages get a message for each gateway that failed or sent false bytes.
 *
 * `pages`: documents of strangers are shown in a sandbox. `trusted` is for an origin on which nothing is kept: documents have
 * this origin then, and load what they name by relative paths through the worker.
 */
export function serveProven(
  scope: WorkerScope,
  {
    pages = 'sandboxed',
    ...options
  }: Pick<ProvingFetchOptions, 'gatewayUrls' | 'fetch' | 'nameQuorum'> & {
    readonly pages?: 'sandboxed' | 'trusted'
  },
): void {
  const notify = async (message: object): Promise<void> => {
    for (const page of await scope.clients.matchAll({ includeUncontrolled: true })) page.postMessage(message)
  }
  const fetcher = new ProvingFetcher({
    ...options,
    onFinding: ({ gateway, error }) => {
      const kind = error.code === 'untrue' ? 'untrue' : 'failed'
      notify({ sluice: kind, gateway, message: error.message }).catch((failed: Error) => failed)
    },
  })
  const answer = async (request: Request, reference: string): Promise<Response> => {
    try {
      const response = await fetcher.fetch(reference, { range: rangeOf(request), signal: request.signal })
      if (pages === 'sandboxed' && isShown(request)) response.headers.set('content-security-policy', sandbox)
      response.headers.set('x-content-type-options', 'nosniff')
      return response
    } catch (error) {
      if (!(error instanceof ClientError)) throw error
      const { code, message } = error
      await notify({ sluice: 'refused', code, message })
      const headers = { 'content-type': 'text/plain; charset=utf-8', 'x-verified': 'no' }
      return new Response(`Not shown: ${message}\n`, { status: code === 'not-found' ? 404 : 502, headers })
    }
  }
  scope.addEventListener('install', (event) => event.waitUntil(scope.skipWaiting()))
  scope.addEventListener('activate', (event) => event.waitUntil(scope.clients.claim()))
  scope.addEventListener('fetch', (event) => {
    const reference = referenceOf(scope, event.request)
    if (reference !== undefined) event.respondWith(answer(event.request, reference))
  })
}
