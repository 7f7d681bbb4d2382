import { rangesAllowed, readRanges } from './ranges.js'
import { custom, flag, list, reloadable } from './setting.js'

/** On whose behalf content is requested from other gateways. */
export const forwarding = {
  headers: reloadable(
    list({
      env: 'SKIP_FORWARDING_HEADERS',
      default: ['ao-peer-port'],
      shape: /^[A-Za-z0-9-]{1,64}$/,
      allowed: 'names of headers',
      why: 'Not for requests with one of these headers: what is not here is requested from the chain alone.',
    }),
  ),
  emptyUserAgent: reloadable(
    flag({
      env: 'SKIP_FORWARDING_EMPTY_USER_AGENT',
      default: true,
      why: 'Not for requests whose User-Agent is there and empty.',
    }),
  ),
  userAgents: reloadable(
    list({
      env: 'SKIP_FORWARDING_USER_AGENTS',
      default: [],
      shape: /^[^\p{Cc}]{1,200}$/u,
      allowed: 'parts of User-Agents, in whatever letters',
      why: 'Not for requests whose User-Agent has one of these in it.',
    }),
  ),
  origins: reloadable(
    list({
      env: 'TRUSTED_GATEWAYS_BLOCKED_ORIGINS',
      default: [],
      shape: /^[A-Za-z0-9.:_-]{1,200}$/,
      allowed: 'host names',
      why: 'Not for requests that gateways of these names passed on.',
    }),
  ),
  blockedClients: reloadable(
    custom<readonly string[]>({
      env: 'TRUSTED_GATEWAYS_BLOCKED_IPS_AND_CIDRS',
      allowed: rangesAllowed,
      defaultText: '',
      default: [],
      read: readRanges,
      why: 'Not for these clients.',
    }),
  ),
  cacheOnlyClients: reloadable(
    custom<readonly string[]>({
      env: 'CACHE_ONLY_CLIENT_IPS_AND_CIDRS',
      allowed: rangesAllowed,
      defaultText: '',
      default: [],
      read: readRanges,
      why: 'Not for these clients either.',
    }),
  ),
}
