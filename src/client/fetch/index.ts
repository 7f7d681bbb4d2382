/** `sluice/fetch`: content from gateways that need no trust. */
export { ClientError } from '../errors.js'
export type { Finding } from './gateways.js'
export { responseSignature } from './http-signature.js'
export {
  ProvingFetcher,
  type ProvingFetchOptions,
  type VerifiedFetchOptions,
  verifiedFetch,
} from './verified-fetch.js'
