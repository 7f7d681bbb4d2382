import { Clients } from '../../admission/clients.js'
import { gatewayDefaults } from '../../gateway/gateway-parts.js'
import type { GatewayOptions } from '../../gateway/gateway-rules.js'
import type { LocalOnlyRules } from '../../gateway/local-only.js'
import { ownHosts } from '../host-names.js'
import type { Settings } from '../thread-settings.js'

/** How every edge thread answers. */
export function gatewayOptions(
  config: Settings<'server' | 'tls' | 'answers' | 'manifests' | 'names'>,
  localOnly: GatewayOptions['localOnly'],
  manifestsOpenMax = gatewayDefaults.manifestsOpenMax,
): GatewayOptions {
  const { server, answers } = config
  return {
    ...gatewayDefaults,
    cache: {
      defaultSeconds: answers.defaultMaxAge,
      stableSeconds: answers.stableMaxAge,
      trustedSeconds: answers.trustedMaxAge,
      unstableSeconds: answers.unstableMaxAge,
      notFoundSeconds: answers.notFoundMaxAge,
      blockedSeconds: answers.blockedMaxAge,
      privateSizeBytes: answers.privateSizeThreshold,
      privateTypes: answers.privateContentTypes,
    },
    operatorsOverTls: config.tls.adminOnPublicListener,
    tagHeaders: answers.tagHeaders,
    tagsMax: answers.tagHeadersMax,
    tagBytesMax: answers.tagHeadersMaxBytes,
    ownHosts: ownHosts(config),
    release: server.release,
    entriesMaxBytes: answers.preparedMaxBytes,
    manifestMaxBytes: config.manifests.maxBytes,
    manifestsOpenMax,
    manifestQuestionsMax: Math.ceil(config.manifests.waitingMax / server.edgeThreads),
    localOnly,
  }
}

function lower(words: readonly string[]): string[] {
  return words.map((word) => word.toLowerCase())
}

/** Requests that are forwarded to no other gateway. */
export function localOnlyRules({ forwarding, limits }: Settings<'forwarding' | 'limits'>): LocalOnlyRules {
  const { headers, emptyUserAgent, userAgents, origins, blockedClients, cacheOnlyClients } = forwarding
  const rules = {
    headers: lower(headers),
    emptyUserAgent,
    userAgents: lower(userAgents),
    origins: lower(origins),
  }
  const exempt = [...blockedClients, ...cacheOnlyClients]
  if (exempt.length === 0) return rules
  const { trustedProxies } = limits
  // Its keys name no bucket: any secret will do.
  const clients = new Clients({ trustedProxies, exempt, ipv6PrefixBits: 128 }, { low: 0, high: 0 })
  return { ...rules, client: (request) => clients.of(request).exempt }
}
