import type { Request } from '../http/exchange.js'

/** Requests that go to no other gateway. Words are in lower case. */
export interface LocalOnlyRules {
  /** Requests with one of these headers are served from here alone. */
  readonly headers: readonly string[]
  /** The same for those whose User-Agent is there and empty. */
  readonly emptyUserAgent: boolean
  /** The same for those whose User-Agent has one of these in it. */
  readonly userAgents: readonly string[]
  /** The same for those that one of these hosts passed on. */
  readonly origins: readonly string[]
  /** The same for those of these clients; absent: of none. */
  readonly client?: (request: Request) => boolean
}

/** Decides which requests are answered without asking other gateways. The operator may change the rules. */
export class LocalOnly {
  constructor(private rules: LocalOnlyRules) {}

  use(rules: LocalOnlyRules): void {
    this.rules = rules
  }

  /** `origin`: the host that a request says it comes from. */
  has(request: Request, origin: string | undefined): boolean {
    const { headers, emptyUserAgent, userAgents, origins, client } = this.rules
    const isRead = emptyUserAgent || userAgents.length > 0
    const agent = isRead ? request.header('user-agent')?.trim().toLowerCase() : undefined
    return (
      headers.some((name) => request.header(name) !== undefined) ||
      (agent === '' && emptyUserAgent) ||
      (agent !== undefined && userAgents.some((part) => agent.includes(part))) ||
      (origin !== undefined && origins.includes(origin.toLowerCase())) ||
      (client?.(request) ?? false)
    )
  }
}
