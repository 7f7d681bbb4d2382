import { type CallRoute, json, words } from './call.js'

/** What the service says of itself. */
export interface ServiceInfo {
  readonly version: string
  /** Token to the address that payments go to. */
  readonly addresses: Readonly<Record<string, string>>
  readonly gateway: string
}

/** What it is, and whether it is well. */
export function serviceInfoRoutes(info: ServiceInfo): CallRoute[] {
  const about = { summary: 'The service, and where payments go', statuses: [200] }
  return [
    ...['/', '/info', '/v1', '/v1/info'].map((path) => ({ ...about, path, answer: async () => json(info) })),
    {
      path: '/health',
      summary: 'Whether it answers',
      statuses: [200],
      type: 'text/plain',
      answer: async () => words(200, 'OK'),
    },
  ]
}
