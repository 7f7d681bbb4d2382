import type { Config } from '../../config/read.js'
import { vocabularies } from '../attest/vocabulary.js'
import { nodeName } from '../threads/open-objects.js'

/** The line by which each answer names this machine, with CRLF in front; '' where the operator does not want it. */
export function nodeLine(config: Config): string {
  if (!config.cluster.isNodeShown) return ''
  return `\r\n${vocabularies[config.server.vocabulary].gateway}Node: ${nodeName(config)}`
}
