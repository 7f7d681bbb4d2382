import { serveProven, type WorkerScope } from './proven-scope.js'

/**
 * A service worker that proves every byte of content that a page loads from gateways by id. Registered as
 * `service-worker.js?gateways=A,B`. What cannot be proven becomes an error page, and all pages get a message
 * `{ sluice: 'untrue', gateway, message }`.
 * Documents are shown in a sandbox; `&pages=trusted` is for an origin that keeps nothing.
 */
const scope = globalThis as unknown as WorkerScope & { readonly location: { readonly href: string } }
const parameters = new URL(scope.location.href).searchParams
serveProven(scope, {
  gatewayUrls: (parameters.get('gateways') ?? '').split(',').filter((url) => url !== ''),
  pages: parameters.get('pages') === 'trusted' ? 'trusted' : 'sandboxed',
})
