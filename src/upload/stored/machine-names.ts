/** Between the name of a machine and a number. CLUSTER_NODE may not end like this. */
const shape = /^(.+)--([1-9]\d{0,8})$/

/** The machine that gave itself this name in the object store. */
export function machineOf(name: string): string {
  return shape.exec(name)?.[1] ?? name
}

function numberOf(name: string): number {
  return Number(shape.exec(name)?.[2] ?? 0)
}

/** Whether a machine had the first of these two names before the second one. */
export function isEarlierName(name: string, other: string): boolean {
  return machineOf(name) === machineOf(other) && numberOf(name) < numberOf(other)
}

/** The name under which a machine goes on after another one has taken over what it left under this one. */
export function nameAfter(name: string): string {
  return `${machineOf(name)}--${numberOf(name) + 1}`
}
