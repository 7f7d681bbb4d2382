// The service worker of the demonstration: the same as `sluice/service-worker`, over gateways of which some are played.
import { serveProven } from '../fetch/proven-scope.js'
import { lyingFetch } from './liars.js'

const asked = new URL(globalThis.location.href).searchParams
serveProven(globalThis, {
  gatewayUrls: (asked.get('gateways') ?? '').split(','),
  fetch: lyingFetch(asked.get('truth') ?? '', asked.get('other') ?? ''),
})
