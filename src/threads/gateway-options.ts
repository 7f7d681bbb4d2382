import type { ClientOptions } from '../admission/clients.js'
import { gatewayDefaults } from '../gateway/gateway-parts.js'
import type { GatewayOptions } from '../gateway/gateway-rules.js'
import { ownHosts } from './host-names.js'
import type { Settings } from './thread-settings.js'

/** How every edge thread answers. */
export function gatewayOptions(
  config: Settings<'server' | 'tls' | 'answers' | 'forwarding' | 'manifests' | 'names'>,
  manifestsOpenMax = gatewayDefaults.manifestsOpenMax,
): Omit<GatewayOptions, 'localOnlyClient'> {
  const { server, answers, forwarding } = config
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
    localOnlyHeaders: lower(forwarding.headers),
    localOnlyEmptyUserAgent: forwarding.emptyUserAgent,
    localOnlyUserAgents: lower(forwarding.userAgents),
    localOnlyOrigins: lower(forwarding.origins),
  }
}

function lower(words: readonly string[]): string[] {
  return words.map((word) => word.toLowerCase())
}

/** Clients for whom no other gateway is asked; undefined where the operator named none. */
export function localOnly({
  forwarding,
  limits,
}: Settings<'forwarding' | 'limits'>): ClientOptions | undefined {
  const exempt = [...forwarding.blockedClients, ...forwarding.cacheOnlyClients]
  const { trustedProxies } = limits
  return exempt.length === 0 ? undefined : { trustedProxies, exempt, ipv6PrefixBits: 128 }
}
