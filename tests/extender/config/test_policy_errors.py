"""Invalid policy files: a line for each error, and the former format."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from extender.config.preemption_policy import InvalidPolicyError, find_policy

HEAD = "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionPolicy\nmetadata: {name: own}\n"
RULE = f"{HEAD}rules:\n- name: all\n"
"""The next line is the sixth one."""
SELECTED = "expected namespaces, labels, priorityClasses, owners or expression"
ERRORS: dict[str, tuple[str, list[str]]] = {
    "guards of groups": (
        (
            f"{RULE}  guards:\n"
            "    cooldown: {victims: 25h, preemptors: never}\n"
            "    loopBreaker: -1h\n"
            "    waitForAutoscaler: soon\n"
            "    limits:\n"
            "    - {victims: 0, per: 1h}\n"
            "    - {victims: 1, per: 0s, by: pod}\n"
            "    - {per: 1h}\n"
            "    - {per: 1h, lostWork: {amount: 0, per: days}}\n"
            "    minAvailable: [{owners: [Job]}]\n"
        ),
        [
            "7: rules[0].guards.cooldown.victims: '25h' is longer than preemptions are kept",
            "7: rules[0].guards.cooldown.preemptors: 'never' is no such duration",
            "8: rules[0].guards.loopBreaker: '-1h' is no such duration",
            "9: rules[0].guards.waitForAutoscaler: 'soon' is no such duration",
            "11: rules[0].guards.limits[0].victims: Expected int >= 1",
            "12: rules[0].guards.limits[1].by: Invalid enum value 'pod'; expected one of cluster",
            "12: rules[0].guards.limits[1].per: '0s' is no such duration; expected a duration",
            "13: rules[0].guards.limits[2]: limits nothing; expected victims or lostWork",
            "14: rules[0].guards.limits[3].lostWork.amount: Expected float >= 0.001",
            "14: rules[0].guards.limits[3].lostWork.per: Invalid enum value 'days'",
            "15: rules[0].guards.minAvailable[0]: Object missing required field replicas",
        ],
    ),
    "expressions": (
        (
            f"{RULE}  cost: {{expression: pod.ready}}\n"
            "  guards:\n"
            "    protect:\n"
            "    - {name: a, expression: pod.age > 3}\n"
            "    - {name: b, expression: 'pod.restarts +'}\n"
        ),
        [
            "6: rules[0].cost.expression: line 1, column 1: expected a result of type int",
            "9: rules[0].guards.protect[0].expression: line 1, column 4",
            "10: rules[0].guards.protect[1].expression: line 1, column",
        ],
    ),
    "an empty file": (
        "",
        [
            f"1: (the document): Object missing required field {name}"
            for name in ("apiVersion", "kind", "metadata", "rules")
        ],
    ),
    "no rules": (f"{HEAD}rules: []\n", ["4: rules: Expected array of length >= 1"]),
    "another kind": (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{}}\n{RULE[len(HEAD) :]}",
        [
            "1: apiVersion: Invalid enum value 'v1'; expected one of reprieve.dev/v1alpha1",
            "2: kind: Invalid enum value 'Pod'; expected one of PreemptionPolicy",
            (
                "4: (the document): Object contains unknown field spec; expected one of "
                "apiVersion, kind, metadata, rules"
            ),
        ],
    ),
    "a name that is no name": (
        RULE.replace("name: own", "name: My_Own"),
        ["3: metadata.name: 'My_Own': a lowercase RFC 1123 subdomain must"],
    ),
    "rules without names": (
        f"{HEAD}rules:\n- preemptors: {{owners: [Job]}}\n- name: ''\n",
        [
            "5: rules[0]: Object missing required field name",
            "6: rules[1].name: is empty; expected a name",
        ],
    ),
    "two rules of one name": (
        f"{HEAD}rules:\n- {{name: a, preemptors: {{owners: [Job]}}}}\n- name: a\n",
        ["6: rules[1].name: 'a' is the name of an earlier rule; expected another name"],
    ),
    "a rule after the default rule": (
        f"{HEAD}rules:\n- name: a\n- name: b\n",
        [
            (
                "5: rules[0]: a rule without preemptors applies to all pods, so that the rules "
                "after it never apply; expected preemptors, or this rule as the last one"
            )
        ],
    ),
    "no default rule": (
        f"{RULE}  preemptors: {{namespaces: [a]}}\n",
        [
            (
                "6: rules[0].preemptors: no rule applies to other pods; expected a last rule "
                "without preemptors"
            )
        ],
    ),
    "preemptors that select nothing": (
        f"{HEAD}rules:\n- name: a\n  preemptors: {{}}\n- name: b\n",
        [f"6: rules[0].preemptors: selects no pods; {SELECTED}"],
    ),
    "preemptors with an error are preemptors": (
        f"{HEAD}rules:\n- name: a\n  preemptors: {{namespace: [a]}}\n- name: b\n",
        [
            (
                "6: rules[0].preemptors: Object contains unknown field namespace; did you mean "
                "namespaces?"
            )
        ],
    ),
    "a rule that is no rule hides no order": (
        f"{HEAD}rules:\n- {{name: a, preemptors: {{owners: [Job]}}}}\n- b\n",
        ["6: rules[1]: Expected object, got str"],
    ),
    "selectors": (
        RULE
        + """
  guards:
    protect:
    - {name: a, namespaces: [kube_system]}
    - {name: b, namespaces: []}
    - {name: c, owners: [deployments, CronJob, '5']}
    - {name: d, priorityClasses: ['']}
    - {name: e}
    - {namespaces: [a]}
    - {name: '', namespaces: [a]}
    - {name: f, labels: null}
    - {name: g, labels: {}}
    - {name: h, labels: {matchLabel: {a: b}}}
    - {name: i, labels: {matchLabels: {a: 1}}}
    - {name: j, labels: {matchLabels: {'a b': c}}}
    - {name: k, labels: {matchExpressions: [{key: a, operator: Near}]}}
    - {name: l, labels: {matchExpressions: [{key: a, operator: In}]}}
    - {name: m, labels: {matchExpressions: [{operator: Exists}]}}
    - {name: n, selector: {matchLabels: {a: b}}, namespaces: [a]}
""",
        [
            "9: rules[0].guards.protect[0].namespaces[0]: 'kube_system': a lowercase RFC 1123",
            "10: rules[0].guards.protect[1].namespaces: Expected array of length >= 1",
            "11: rules[0].guards.protect[2].owners[0]: 'deployments'; did you mean Deployment?",
            "11: rules[0].guards.protect[2].owners[1]: 'CronJob'; expected Job, which owns",
            "11: rules[0].guards.protect[2].owners[2]: '5'; expected a kind, such as Job",
            "12: rules[0].guards.protect[3].priorityClasses[0]: Expected str of length >= 1",
            f"13: rules[0].guards.protect[4]: selects no pods; {SELECTED}",
            "14: rules[0].guards.protect[5]: Object missing required field name",
            "15: rules[0].guards.protect[6].name: is empty; expected a name",
            "16: rules[0].guards.protect[7].labels: Expected object, got null",
            (
                "17: rules[0].guards.protect[8].labels: selects every pod; expected matchLabels "
                "or matchExpressions"
            ),
            (
                "18: rules[0].guards.protect[9].labels: Object contains unknown field matchLabel; "
                "did you mean matchLabels?"
            ),
            "19: rules[0].guards.protect[10].labels.matchLabels.a: Expected str, got int",
            "20: rules[0].guards.protect[11].labels.matchLabels.a b: 'a b' is not a valid",
            (
                "21: rules[0].guards.protect[12].labels.matchExpressions[0]: unknown operator "
                "'Near'; expected one of In, NotIn, Exists, DoesNotExist"
            ),
            "22: rules[0].guards.protect[13].labels.matchExpressions[0]: 'a': for 'in', 'notin'",
            (
                "23: rules[0].guards.protect[14].labels.matchExpressions[0]: Object missing "
                "required field key"
            ),
            "24: rules[0].guards.protect[15]: Object contains unknown field selector; expected one",
        ],
    ),
    "guards": (
        RULE
        + """
  guards:
    pdb: never
    minRuntime:
    - {owners: [Job]}
    - {for: 0s}
    - {for: half an hour}
    - {for: 30}
    priorityGap: 0
    maxVictims: 0
    maxLostWork: {amount: 0, per: days}
    preemptionDelay: -5s
    maxVictim: 5
""",
        [
            "8: rules[0].guards.pdb: Invalid enum value 'never'; expected one of prefer, strict",
            "10: rules[0].guards.minRuntime[0]: Object missing required field for",
            "11: rules[0].guards.minRuntime[1].for: '0s' is no such duration; expected a duration",
            "12: rules[0].guards.minRuntime[2].for: 'half an hour' is no such duration; expected",
            "13: rules[0].guards.minRuntime[3].for: Expected str, got int",
            "14: rules[0].guards.priorityGap: Expected int >= 1",
            "15: rules[0].guards.maxVictims: Expected int >= 1",
            "16: rules[0].guards.maxLostWork.amount: Expected float >= 0.001",
            (
                "16: rules[0].guards.maxLostWork.per: Invalid enum value 'days'; expected one of "
                "hours, minutes, seconds"
            ),
            "17: rules[0].guards.preemptionDelay: '-5s' is no such duration; expected a duration",
            (
                "18: rules[0].guards: Object contains unknown field maxVictim; did you mean "
                "maxVictims?"
            ),
        ],
    ),
    "cheapest victims": (
        RULE
        + """
  victims: {strategy: cheap, by: most restarts}
""",
        [
            "7: rules[0].victims.strategy: Invalid enum value 'cheap'; expected one of cheapest",
            (
                "7: rules[0].victims.by: unknown criterion 'most restarts'; expected one of fewest "
                "victims, lowest cost, least lost work, "
            ),
        ],
    ),
    "limits that contradict each other": (
        RULE
        + """
  guards:
    limits:
    - {victims: 5, per: 1h, by: namespace}
    - {victims: 5, per: 1h}
    - {victims: 9, per: 60m, by: namespace, lostWork: {amount: 1, per: hours}}
""",
        ["11: rules[0].guards.limits[2].victims: contradicts an earlier limit per 60m and"],
    ),
    "a selector of lost work": (
        f"{RULE}\n  guards: {{maxLostWork: {{amount: 1, per: hours, owners: [jobs]}}}}\n",
        ["7: rules[0].guards.maxLostWork.owners[0]: 'jobs'; did you mean Job?"],
    ),
    "a strategy without a criterion": (
        f"{RULE}\n  victims: {{strategy: cheapest}}\n",
        ["7: rules[0].victims: Object missing required field by"],
    ),
    "an order of a wrong type": (
        f"{RULE}\n  victims: [5, highest]\n",
        [
            "7: rules[0].victims[0]: Expected str, got int",
            "7: rules[0].victims[1]: unknown criterion 'highest'; did you mean 'highest cost'",
        ],
    ),
    "weights": (
        RULE
        + """
  lostWork:
    weights:
      gpu: 1
      cpu: 0
      memory: -1
      ephemeral-storage: 0.0005
      a/b: .nan
      nvidia.com/gpu: much
    checkpoint: a b
""",
        [
            "9: rules[0].lostWork.weights.gpu: 'gpu' is no resource; expected cpu, memory,",
            "10: rules[0].lostWork.weights.cpu: 0; expected from 0.001 to 1000000, in thousandths",
            "11: rules[0].lostWork.weights.memory: -1; expected from 0.001 to 1000000",
            "12: rules[0].lostWork.weights.ephemeral-storage: 0.0005; expected from 0.001",
            "13: rules[0].lostWork.weights.a/b: nan; expected from 0.001",
            "14: rules[0].lostWork.weights.nvidia.com/gpu: Expected float, got str",
            "15: rules[0].lostWork.checkpoint: 'a b': name part must consist of",
        ],
    ),
    "fragmentation": (
        f"{RULE}  fragmentation: {{resource: gpu}}\n",
        ["6: rules[0].fragmentation.resource: 'gpu' is no extended resource; expected a name such"],
    ),
    "criteria": (
        RULE
        + """
  victims: [oldest, highest priority, highest priority]
  candidates: [fewest victim, cheapest, least lost work, fewest owners, least lost work]
""",
        [
            (
                "7: rules[0].victims[0]: unknown criterion 'oldest'; expected one of highest "
                "priority, earliest start"
            ),
            "7: rules[0].victims[2]: repeats 'highest priority'; expected each criterion only once",
            (
                "8: rules[0].candidates[0]: unknown criterion 'fewest victim'; did you mean "
                "'fewest victims'?"
            ),
            "8: rules[0].candidates[1]: unknown criterion 'cheapest'; expected one of fewest PDB",
            "8: rules[0].candidates[4]: repeats 'least lost work'; expected each criterion only",
        ],
    ),
    "no criteria": (
        f"{RULE}  victims: []\n  candidates: []\n",
        [
            "6: rules[0].victims: Expected array of length >= 1",
            "7: rules[0].candidates: Expected array of length >= 1",
        ],
    ),
    "a key that is written twice": (
        f"{RULE}  victims: [earliest start]\n  victims: [highest priority]\n",
        ["7: rules[0].victims: written in lines 6 and 7; expected it once"],
    ),
    "elements keep their numbers": (
        f"{RULE}  guards:\n    protect:\n    - 5\n    - {{name: a}}\n    minRuntime: [x, {{}}]\n",
        [
            "8: rules[0].guards.protect[0]: Expected object, got int",
            f"9: rules[0].guards.protect[1]: selects no pods; {SELECTED}",
            "10: rules[0].guards.minRuntime[0]: Expected object, got str",
            "10: rules[0].guards.minRuntime[1]: Object missing required field for",
        ],
    ),
}
"""Text → the beginnings of its errors, after the name of the file."""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(("text", "errors"), ERRORS.values(), ids=ERRORS)
def test_each_error_has_its_line(tmp_path: Path, text: str, errors: list[str]) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidPolicyError) as raised:
        find_policy(path)
    found = [line.removeprefix(f"{path}:") for line in raised.value.errors]
    starts = [line[: len(start)] for line, start in zip(found, errors, strict=False)]
    assert (starts, len(found)) == (errors, len(errors)), "\n".join(found)


@pytest.mark.parametrize(
    "former",
    [
        "name: own\n",
        "name: own\ncandidates: [fewest victims]\n",
        "name: own\nvictims: [earliest start]\nprotect: [{name: a, namespaces: [kube-system]}]\n",
        (
            "name: own\nprotect:\n- name: db\n  selector:\n    matchExpressions:\n"
            "    - {key: role, operator: In, values: [db]}\n"
        ),
    ],
)
def test_a_policy_of_the_former_format_is_refused_with_what_to_write(
    tmp_path: Path, former: str
) -> None:
    path = written(tmp_path, former)
    with pytest.raises(InvalidPolicyError) as raised:
        find_policy(path)
    [error] = raised.value.errors
    refusal = f"{path}:1: (the document): the format of policies has changed; expected "
    assert error.startswith(refusal)
    policy = find_policy(written(tmp_path, error.removeprefix(refusal)))
    assert (policy.name, policy.default.name) == ("own", "own")
    rules = yaml.safe_load(former).get("protect", [])
    assert [guard.name for guard in policy.default.victim_guards] == [
        each["name"] for each in rules
    ]


@pytest.mark.parametrize(
    "former",
    ["protect: 5", "name: a\nprotekt: []", "protect: [a, {selector: 1}]\nname: [x]", "name:"],
)
def test_a_broken_policy_of_the_former_format_is_refused(tmp_path: Path, former: str) -> None:
    with pytest.raises(InvalidPolicyError, match="the format of policies has changed"):
        find_policy(written(tmp_path, former))
