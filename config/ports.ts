/** Ports of listeners by their settings; undefined: it does not listen; 0: on any free port. */
export type Ports = Readonly<Record<string, number | undefined>>

/** Says which of `own` is the port of another listener, of `taken` or of `own`. */
export function samePorts(own: Ports, taken: Ports): string[] {
  const others = Object.entries(taken)
  const wrong: string[] = []
  for (const [name, port] of Object.entries(own)) {
    if (port === undefined || port === 0) continue
    const [other] = others.find(([, one]) => one === port) ?? []
    if (other !== undefined) wrong.push(`${name} and ${other} must differ`)
    others.push([name, port])
  }
  return wrong
}
