import type { ClientOptions } from '../admission/clients.js'
import type { ServeOptions } from '../http/listen.js'
import type { Settings } from './thread-settings.js'

/** How clients are distinguished. */
export function clientsOf({ limits }: Settings<'limits'>): ClientOptions {
  const { trustedProxies, exempt, ipv6PrefixBits } = limits
  return { trustedProxies, exempt, ipv6PrefixBits }
}

/** Options of every listener about slow clients and about many of them. */
export function paceOf({
  server: { stallMs, bodyBytesPerSecondMin, flowsMax },
}: Settings<'server'>): Required<Pick<ServeOptions, 'stallMs' | 'bodyBytesPerSecondMin' | 'flowsMax'>> {
  return { stallMs, bodyBytesPerSecondMin, flowsMax }
}
