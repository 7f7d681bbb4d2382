import { serveProven, type WorkerScope } from './proven-scope.js'

/**
 * A service worker that proves every byte of content that a page loads from gateways by id. Registered as
 * `service-worker.js?gateways=A,B`. What cannot be proven is an error page instead, and is told to all pages as a message
 * `{ sluice: 'untrue', gateway, message }`.
 */
const scope = globalThis as unknown as WorkerScope & { readonly location: { readonly href: string } }
const asked = new URL(scope.location.href).searchParams
serveProven(scope, { gatewayUrls: (asked.get('gateways') ?? '').split(',').filter((url) => url !== '') })
